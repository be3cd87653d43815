/* Programs of pinfold's own that are not in the main binary. */
#pragma once

/* Opens the helper called `name`: beside this program in a build tree, in libexec where it was installed. The
 * search path and the environment have no say, and a file that others could write, or that belongs to another
 * user than this program, root or the caller, is passed over: it runs with our rights. -1: there is none. */
int sys_helper_open(const char *name);
