package local

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// A follower receives the runner's stderr. It writes whole lines to the log, and passes on the
// progress that they contain.
type follower struct {
	log  io.Writer
	live runners.Progress
	rest []byte
}

func (f *follower) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		i := bytes.IndexByte(f.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := f.rest[:i+1]
		if e, ok := progressIn(line); ok {
			f.live.Report(e)
		}
		if _, err := f.log.Write(line); err != nil {
			return 0, err
		}
		f.rest = f.rest[i+1:]
	}
}

// progressIn parses a line of the runner's JSON log. A line about progress has a kernel but no job.
// All other lines about a kernel have a job, too.
func progressIn(line []byte) (runners.Event, bool) {
	var record struct{ Level, Msg, Kernel, Job string }
	if json.Unmarshal(line, &record) != nil || record.Level != "INFO" || record.Kernel == "" || record.Job != "" {
		return runners.Event{}, false
	}
	gate, text, ok := strings.Cut(record.Msg, ": ")
	return runners.Event{Gate: gates.Gate(gate), Text: text}, ok
}
