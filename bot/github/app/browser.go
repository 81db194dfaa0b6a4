package app

import (
	"fmt"
	"os/exec"
)

// Browser is how to open a page in a browser of this host's; nil where none would
// show up before the person who asked: on a host without a screen, at the other
// end of ssh, and as root, whom browsers refuse.
func Browser(uid int, getenv func(string) string) func(address string) error {
	if uid == 0 || getenv("SSH_CONNECTION") != "" || getenv("DISPLAY")+getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return func(address string) error {
		cmd := exec.Command("xdg-open", address)
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("opening a browser: %w", err)
		}
		go func() { _ = cmd.Wait() }() // it may live as long as the browser
		return nil
	}
}
