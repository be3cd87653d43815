/* What the records of a container say about it: from the engine's annotations where it gives them. */
#pragma once

#include "base/error.h"
#include "container/container.h"
#include "record/record.h"

/* *out is to be given to subject_clear. */
void subject_make(const char *id, const struct prepared *prepared, const char *run_id,
                  struct record_subject *out);
void subject_clear(struct record_subject *subject);

/* A refusal is said on standard error, the one channel that every engine shows, and recorded. Any other error
 * is not; nor is one from before the configuration and the policy were read. */
void refusal_record(const char *id, const struct prepared *prepared, const struct error *error);

/* Annotation dev.pinfold.run-id, else 128 random bits. The caller frees it. */
fallible run_id_make(const struct oci_config *config, char **out);
