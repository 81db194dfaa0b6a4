package cli

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/bot/cli/terminal"
	"github.com/kernelgate/kernelgate/bot/local"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners"
)

// liveProgress returns a progress display that can be cleared before something else is printed. On
// a terminal it updates the elapsed time until ctx ends.
func liveProgress(ctx context.Context, w io.Writer) local.Live {
	if _, ok := terminal.Size(w); !ok || os.Getenv("TERM") == "dumb" {
		return &runners.Plain{Out: w}
	}
	line := &terminal.Line{Out: w, Colour: coloured(w), Now: time.Now, Width: func() int {
		width, _ := terminal.Size(w)
		return width
	}}
	go func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				line.Tick()
			}
		}
	}()
	return line
}

// coloured reports whether to use colours on a writer.
func coloured(w io.Writer) bool {
	_, ok := terminal.Size(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func terminalOptions(w io.Writer) report.TerminalOptions {
	if width, ok := terminal.Size(w); ok {
		return report.TerminalOptions{Width: width, Colour: coloured(w)}
	}
	return report.TerminalOptions{Width: 120}
}
