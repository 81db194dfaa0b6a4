package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// crashBySignal makes a panic or a fault end this process by SIGABRT. Go's default is exit status 2, which means a mistake in
// the configuration here: nobody would restart a bot that has crashed.
func crashBySignal() { debug.SetTraceback("crash") }

// onHangup calls a function for each SIGHUP until ctx ends. By default the signal ends a process at once, without an orderly
// stop. It is how other daemons are told to read their configuration again or to rotate their logs, so it is sent by habit.
func onHangup(ctx context.Context, do func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Ignore(syscall.SIGHUP) // an orderly stop goes on
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				do()
			}
		}
	}()
}
