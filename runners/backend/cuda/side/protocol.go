// Package side is the process that holds one side of a comparison: its code and the memory of its
// launches, in a CUDA context that maps nothing else. Another process, the judge, also owns that
// memory and writes inputs and poison into it. This process only launches when the judge asks, and
// reports how long the launch took. It compares no outputs and judges nothing.
//
// A change's kernels can reach only what lies in this context. They can reach no future input, no
// expected output, no other side and no clock except the device's.
//
// [Start] and the methods of [Process] are the judge's half of the protocol; [Serve] is the half in
// the side's process.
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
	Slots   *slotSet `json:"slots,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
	Ready   *ready   `json:"ready,omitempty"`
	Run     *run     `json:"run,omitempty"`
	Rough   *run     `json:"rough,omitempty"`
}

// A Setup is the first request to a side.
type Setup struct {
	Manifest string        `json:"manifest"` // text of the base's kernel.yaml
	Own      string        `json:"own"`      // the file with the side's implementation; see Built
	Timeout  time.Duration `json:"timeout"`  // for one launch
	// Padding is the number of bytes to allocate first, so that addresses differ between rounds.
	Padding int64 `json:"padding"`
	Flush   bool  `json:"flush"` // whether runs will ask for a cold cache
}

// slotSet describes memory that comes with the packet, one descriptor per slot.
type slotSet struct {
	Set    int   `json:"set"`
	Size   int64 `json:"size"`
	Count  int   `json:"count"`
	Single bool  `json:"single,omitempty"` // one slot, mapped only while a launch runs alone in it
}

// A Problem is a shape, and the places of its launches' arguments in the slots of a set.
type Problem struct {
	ID      int           `json:"id"`
	Set     int           `json:"set"`
	Dims    manifest.Dims `json:"dims"`
	Offsets []int         `json:"offsets"` // of the arrays in their slot
	Scratch []int         `json:"scratch"` // of the side's scratch, which follows the arrays
	Batch   int           `json:"batch"`   // launches that run as one graph
	// Share means that the launches of all slots keep their state in the same place.
	Share bool `json:"share"`
}

// ready asks the side to do everything that precedes a sample.
type ready struct {
	Problem int  `json:"problem"`
	Reset   bool `json:"reset"`           // discard the state that earlier launches left
	Flush   bool `json:"flush,omitempty"` // and empty the caches
}

// run asks for launches in neighbouring slots.
type run struct {
	Problem int `json:"problem"`
	First   int `json:"first"`
	Count   int `json:"count"`
	// Flush empties the caches first. The flush keeps the GPU busy until the launches are queued,
	// so that the measured time includes no pause between two calls of the host.
	Flush bool `json:"flush"`
	// Filled means that the judge has filled the cache. The launches are queued before the GPU starts,
	// which a flush would otherwise allow.
	Filled bool `json:"filled,omitempty"`
	// Single times one more launch, in the single slot of the problem's set, after the others have
	// finished.
	Single bool `json:"single,omitempty"`
}

// An answer is the side's packet in reply to each request.
type answer struct {
	Nanos int64 `json:"ns,omitempty"`
	// State means that the loaded kernel has memory that outlives a launch.
	State   bool           `json:"state,omitempty"`
	Failure *gates.Failure `json:"failure,omitempty"`
	Error   string         `json:"error,omitempty"`
}

const (
	maxPacket = 64 << 10
	maxFiles  = 64 // slots in one packet
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

// receive reads one packet. The caller owns the descriptors that came with it.
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
				files = append(files, os.NewFile(uintptr(fd), "slot"))
			}
		}
	}
	return files, json.Unmarshal(buffer[:n], into)
}
