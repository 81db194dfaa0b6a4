package sandbox

import (
	"encoding/gob"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// The binary runs in three parts. The caller's process starts initName in the new namespaces. That
// part builds the root, starts launchName and stays as process 1. launchName drops all its
// privileges and becomes the program. Each part receives the config from the previous one over a
// socket, and replies there.
const (
	initName   = "sandbox-init"
	launchName = "sandbox-launch"
)

// stageEnv is the whole environment of both parts. Garbage collection is off: the initialisation of
// the binary's packages would trigger two collections, a third of the start time, and these parts
// need hardly any memory.
var stageEnv = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=64MiB"}

// A process that was started as one of the sandbox's parts does only that and never reaches main.
// The parts run from init to save time. Go initialises the packages whose imports are ready in the
// order of their paths, and this package imports little. So the rest of the binary, with its
// regular expressions and tables, is not initialised twice for every program in a sandbox; that
// took more than half of the start time.
func init() {
	// Not os.Exit: its exit hooks, which take a second under the race detector, do not belong in
	// these parts.
	switch stageName() {
	case initName:
		syscall.Exit(runInit())
	case launchName:
		syscall.Exit(runLaunch())
	}
}

func stageName() string {
	if len(os.Args) != 2 || (os.Args[0] != initName && os.Args[0] != launchName) {
		return ""
	}
	return os.Args[0]
}

// stageFile returns the socket to the previous part. Its descriptor is the only argument.
func stageFile() (*os.File, error) {
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return nil, fmt.Errorf("read the descriptor of the sandbox's socket: %w", err)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "sandbox socket"), nil
}

// config is what the inner parts need to know about the Spec.
type config struct {
	Args, Env []string
	Dir       string
	Layout    layout
	Files     int // number of ExtraFiles; they are descriptors 3 and up in the program
	Limits    Limits
	IDs       identity
	Calls     []Call
	Host      string
	Watch     bool
}

// report is a reply of an inner part. Error means that nothing was started. Otherwise the launch
// part reports that it is ready. Process 1 sends an empty report when the program runs, and one
// with Exit when the program has ended.
type report struct {
	Error       string
	Unsupported bool // the kernel would refuse any sandbox, not only this one
	Exit        *exitReport
}

// kernelError marks a step that fails only on a kernel without full support for namespaces.
type kernelError struct{ error }

func (e kernelError) Unwrap() error { return e.error }

type exitReport struct {
	Status      syscall.WaitStatus
	OutOfMemory bool
	Refused     []string
	Lookups     []string
	Opened      []string
	LookupsCut  bool
}

// socketpair returns two connected files, closed on exec. The near one can be closed while a read
// blocks on it.
func socketpair() (near, far *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "sandbox socket"), os.NewFile(uintptr(fds[1]), "sandbox socket"), nil
}

// send writes one report. It drops the error: a reader that has gone no longer needs the report.
func send(replies *gob.Encoder, r report) { _ = replies.Encode(r) }
