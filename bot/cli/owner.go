package cli

import (
	"fmt"
	"os"
	"syscall"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// becomeOwner makes this process the user that a journal belongs to, if it is root's: the bot could not read files that root
// leaves in its folder. It returns the path of the data folder for that user. systemd keeps the folder of a dynamic user below
// one that only root may enter, so the process enters it first.
func becomeOwner(data, journalFolder string) (string, error) {
	if os.Geteuid() != 0 {
		return data, nil
	}
	uid, gid, err := journal.Owner(journalFolder)
	if err != nil || uid == 0 {
		return data, err
	}
	if err := os.Chdir(data); err != nil {
		return "", fmt.Errorf("entering the data folder: %w", err)
	}
	for _, drop := range []func() error{
		func() error { return syscall.Setgroups([]int{gid}) },
		func() error { return syscall.Setresgid(gid, gid, gid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := drop(); err != nil {
			return "", fmt.Errorf("%s belongs to user %d, and this process cannot become that user: %w (run it as that user)", journalFolder, uid, err)
		}
	}
	return ".", nil
}
