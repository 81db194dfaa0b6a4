package entryname

import "github.com/kernelgate/kernelgate/runners/toolchain/output"

// Quote is a name that a stranger chose, fit for a message.
func Quote(name string) string { return output.Quote(name, maxShown, true) }
