// The host compiler's preprocessor stops here, in its own format.
#include "no_such_header.h"
