package serve

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Conceal keeps processes of the same user, the local runner above all, from
// reading the memory and the environment of this one.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protecting the memory of this process: %w", err)
	}
	return nil
}

// room is how much of the disk under a folder is left, and how large that is.
func room(dir string) (free, size float64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("asking how full the disk is: %w", err)
	}
	return float64(s.Bavail) * float64(s.Bsize), float64(s.Blocks) * float64(s.Bsize), nil
}
