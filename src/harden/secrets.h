/* Values that have the shape of a secret, whatever their name. Pure. */
#pragma once

/* "its value has the shape of a GitHub token", or NULL. The value itself is in no message. */
const char *secret_shape(const char *value);
