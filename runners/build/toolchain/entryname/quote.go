package entryname

import "github.com/kernelgate/kernelgate/runners/build/toolchain/output"

// Quote makes an untrusted name fit for a message.
func Quote(name string) string { return output.Quote(name, maxShown, true) }
