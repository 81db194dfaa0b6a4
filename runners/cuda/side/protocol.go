// Package side is the process that holds one side of a comparison: its code, and
// the memory of its launches, in a CUDA context that maps nothing else. The
// judge owns that memory too and writes inputs and poison into it; this process
// only launches when it is told to, and says how long that took. A change's
// kernels can reach what lies in this context: no input to come, no expected
// output, no other side, no clock but the device's own.
package side

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A request is one packet from the judge. Exactly one field is set.
type request struct {
	Setup   *Setup   `json:"setup,omitempty"`
	Load    *Built   `json:"load,omitempty"`
	Rooms   *slots   `json:"rooms,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
	Ready   *ready   `json:"ready,omitempty"`
	Run     *run     `json:"run,omitempty"`
	Rough   *run     `json:"rough,omitempty"`
}

// A Setup is what a side is told before anything else.
type Setup struct {
	Manifest string        `json:"manifest"` // text of the base's kernel.yaml
	Own      string        `json:"own"`      // the file that the side's implementation stands in; see Built
	Timeout  time.Duration `json:"timeout"`  // of one launch
	Padding  int64         `json:"padding"`  // bytes to take before anything else, so that places differ from round to round
	Flush    bool          `json:"flush"`    // whether runs will ask for a cold cache
}

// slots is memory that comes with the packet, a descriptor a room.
type slots struct {
	Set   int   `json:"set"`
	Size  int64 `json:"size"`
	Count int   `json:"count"`
	Lone  bool  `json:"lone,omitempty"` // one room, which is mapped only while a launch runs alone in it
}

// A Problem is a shape, and how its launches find their arguments in the rooms of
// a set.
type Problem struct {
	ID      int           `json:"id"`
	Set     int           `json:"set"`
	Dims    manifest.Dims `json:"dims"`
	Offsets []int         `json:"offsets"` // of arrays in their room
	Scratch []int         `json:"scratch"` // the same of the side's scratch, behind them
	Batch   int           `json:"batch"`   // launches that run as one
	Share   bool          `json:"share"`   // all rooms' launches leave their state in the same place
}

// ready asks for everything that comes before a sample.
type ready struct {
	Problem int  `json:"problem"`
	Reset   bool `json:"reset"` // what earlier launches left behind
}

// run asks for launches in neighbouring rooms.
type run struct {
	Problem int `json:"problem"`
	First   int `json:"first"`
	Count   int `json:"count"`
	// Flush empties the caches first. What does it keeps the GPU busy until the
	// launches are queued, so that no time between two calls of the host is measured.
	Flush bool `json:"flush"`
	// Lone times one more launch, in the lone room of the problem's set, after the others
	// have finished.
	Lone bool `json:"lone,omitempty"`
}

// An answer is the side's packet for each of the judge's.
type answer struct {
	Nanos   int64          `json:"ns,omitempty"`
	State   bool           `json:"state,omitempty"` // of a loaded kernel: it has memory that outlives a launch
	Failure *gates.Failure `json:"failure,omitempty"`
	Error   string         `json:"error,omitempty"`
}

const (
	maxPacket = 64 << 10
	maxFiles  = 64 // rooms in one packet
)

// send writes one packet with descriptors.
func send(fd int, v any, files []*os.File) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(fd, text, rights, nil, 0)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

var errEnded = errors.New("the other side has gone")

// receive reads one packet. Descriptors that came with it are the caller's.
func receive(fd int, buffer []byte, into any) ([]*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	var n, oobn, flags int
	for {
		var err error
		n, oobn, flags, _, err = unix.Recvmsg(fd, buffer, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		break
	}
	if n == 0 {
		return nil, errEnded
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return nil, fmt.Errorf("a packet of more than %d bytes or %d descriptors", maxPacket, maxFiles)
	}
	var files []*os.File
	if oobn > 0 {
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			fds, err := unix.ParseUnixRights(&m)
			if err != nil {
				return nil, err
			}
			for _, fd := range fds {
				files = append(files, os.NewFile(uintptr(fd), "room"))
			}
		}
	}
	return files, json.Unmarshal(buffer[:n], into)
}
