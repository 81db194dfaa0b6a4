// Package runnable writes programs that tests run.
package runnable

import (
	"os"
	"syscall"
)

// Write writes a program. No process is forked meanwhile: a child that still had the file open for writing would keep everybody from
// running it ("text file busy").
func Write(path string, program []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, program, 0o755)
}
