// Package pyref runs references that are written in Python: a function over NumPy arrays or PyTorch tensors, or one expression
// of the manifest. Each check has one process of Python in a sandbox of its own, which is started before the first outputs are
// expected and computes them case by case. No code of a candidate enters that sandbox, and nothing of the repository is in it but
// the reference's one file. The package draws no inputs and compares no outputs.
package pyref

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

//go:embed serve.py
var script []byte

// Timeouts of one check's process.
const (
	startTimeout = 3 * time.Minute // importing PyTorch from a cold disk takes a while
	// CaseTimeout is what a reference may take for one case.
	CaseTimeout = 2 * time.Minute
)

const (
	maxSource = 1 << 20
	// maxThreads is how many a library starts: each of them starts as many, and a host may have hundreds of processors.
	maxThreads = 16
)

// A Spec is the reference of one check.
type Spec struct {
	Manifest *manifest.Manifest // of the base
	Trusted  string             // the folder of the base's manifest
	Scratch  string             // a folder for files of the process
	Python   *Python
	// Devices are the GPU's device files, and GPU is its UUID, for device: cuda.
	Devices []string
	GPU     string
	// AnyDevice lets PyTorch compute on the GPU, if it sees one, where the manifest names no device.
	AnyDevice bool
	Timeout   time.Duration // of one case; 0 is CaseTimeout
}

// A Process is a reference on its way.
type Process struct {
	Client
	program *sandbox.Process
	prints  *tail
	ended   chan struct{}
	result  sandbox.Result
	// Digest is the hash of the reference's file, or of its expression.
	Digest string

	once  sync.Once
	ready error
}

// setup is the first request: which reference is meant.
type setup struct {
	Source string   `json:"source,omitempty"` // inside the sandbox
	Name   string   `json:"name"`             // as messages call it
	Entry  string   `json:"entry,omitempty"`
	Torch  string   `json:"torch,omitempty"`
	DType  string   `json:"dtype"`
	Device string   `json:"device"`
	Path   []string `json:"path"`
}

const inside = "/reference"

// Digest is the hash of a reference: of its file, or of its expression.
func Digest(m *manifest.Manifest, trusted string) (string, error) {
	text, err := sourceOf(m, trusted)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// sourceOf is the text of the reference. A link is none: it could lead to a file of the candidate.
func sourceOf(m *manifest.Manifest, trusted string) ([]byte, error) {
	r := m.Reference
	if r.Torch != "" {
		return []byte(r.Torch), nil
	}
	file := filepath.Join(trusted, filepath.FromSlash(r.Source))
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, &Mistake{Text: "is not there (add the file, or write its name in the manifest)"}
	case err != nil:
		return nil, fmt.Errorf("reading the reference: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxSource:
		return nil, &Mistake{Text: "is no file of at most 1 MiB (write the reference into one file)"}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the reference: %w", err)
	}
	return text, nil
}

// Start starts Python with the reference and does not wait for it. The process ends with ctx. The error is a *Mistake where the
// reference is at fault.
func Start(ctx context.Context, s Spec) (*Process, error) {
	text, err := sourceOf(s.Manifest, s.Trusted)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Scratch, 0o755); err != nil {
		return nil, fmt.Errorf("making room for the reference: %w", err)
	}
	work, err := os.MkdirTemp(s.Scratch, "reference-")
	if err != nil {
		return nil, fmt.Errorf("making room for the reference: %w", err)
	}
	r := s.Manifest.Reference
	first := setup{Name: r.Called(), Entry: r.Entry, Torch: r.Torch, DType: string(cmp.Or(r.DType, manifest.Float64)), Device: s.device(), Path: append([]string{}, s.Python.path...)}
	files := []error{os.WriteFile(filepath.Join(work, "serve.py"), script, 0o644)}
	if r.Torch == "" {
		first.Source = inside + "/reference.py"
		files = append(files, os.WriteFile(filepath.Join(work, "reference.py"), text, 0o644))
	}
	// The sandbox's program may be another user than this one.
	if err := errors.Join(append(files, os.Chmod(work, 0o755))...); err != nil {
		return nil, fmt.Errorf("writing the reference: %w", err)
	}
	sum := sha256.Sum256(text)
	p := &Process{prints: &tail{}, ended: make(chan struct{}), Digest: "sha256:" + hex.EncodeToString(sum[:])}
	if err := p.start(ctx, s, work, first); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Process) start(ctx context.Context, s Spec, work string, first setup) error {
	requests, asks, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe to the reference: %w", err)
	}
	defer requests.Close()
	answers, replies, err := os.Pipe()
	if err != nil {
		asks.Close()
		return fmt.Errorf("making a pipe to the reference: %w", err)
	}
	defer replies.Close()
	arrays, err := newMemory()
	if err != nil {
		asks.Close()
		answers.Close()
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		asks.Close()
		answers.Close()
		arrays.close()
		return fmt.Errorf("making a socket to the reference: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	spec := sandbox.Spec{
		Args:   []string{s.Python.Program, "-I", "-B", inside + "/serve.py"},
		Env:    append(environment(), s.gpuEnv()...),
		Places: []sandbox.Place{{Host: work, Inside: inside}}, Read: append(sandbox.SystemPaths(), s.Python.read...),
		ExtraFiles: []*os.File{requests, replies, arrays.File(), theirs}, Stdout: p.prints, Stderr: p.prints,
		Limits: sandbox.PythonReference.Limits(),
	}
	if first.Device != string(manifest.OnCPU) {
		spec.Devices = s.Devices
	}
	if p.program, err = sandbox.Start(ctx, spec); err != nil {
		asks.Close()
		answers.Close()
		arrays.close()
		ours.Close()
		return fmt.Errorf("starting the reference: %w", err)
	}
	go func() {
		p.result, _ = p.program.Wait()
		close(p.ended)
	}()
	p.Client = Client{To: asks, From: answers, Memory: arrays, Socket: ours, Timeout: cmp.Or(s.Timeout, CaseTimeout), late: p.program.Kill, end: p.end}
	return p.send(first)
}

// environment has the libraries of arrays use the processors, and none while nobody asks.
func environment() []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LC_ALL=C.UTF-8", "OMP_WAIT_POLICY=PASSIVE"}
	for _, library := range []string{"OMP", "OPENBLAS", "MKL"} {
		env = append(env, fmt.Sprintf("%s_NUM_THREADS=%d", library, min(runtime.NumCPU(), maxThreads)))
	}
	return env
}

// device is where PyTorch computes: as the manifest says, or on any.
func (s Spec) device() string {
	if device := s.Manifest.Reference.Device; device != "" {
		return string(device)
	}
	if s.AnyDevice {
		return "any"
	}
	return string(manifest.OnCPU)
}

func (s Spec) gpuEnv() []string {
	if s.GPU == "" || s.device() == string(manifest.OnCPU) {
		return nil
	}
	return []string{"CUDA_VISIBLE_DEVICES=" + s.GPU, "CUDA_CACHE_DISABLE=1"}
}

// Ready waits until the reference is loaded. The error is a *Mistake where it cannot be.
func (p *Process) Ready() error {
	p.once.Do(func() { p.ready = p.loaded() })
	return p.ready
}

// OnGPU reports whether a reference that is loaded computes on the GPU.
func (p *Process) OnGPU() bool { return p.device == string(manifest.OnCUDA) }

// Close ends the process.
func (p *Process) Close() {
	p.program.Kill()
	<-p.ended
	p.To.Close()
	p.From.Close()
	p.Socket.Close()
	p.mu.Lock() // nobody reads there any more
	defer p.mu.Unlock()
	p.Memory.close()
}

// PIDs are the processes of the sandbox, as this host numbers them: whoever looks at the GPU's processes knows them by these.
func (p *Process) PIDs() []int {
	all := []int{p.program.Pid()}
	for i := 0; i < len(all); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for _, word := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// end says how the process ended that answers no more.
func (p *Process) end() string {
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		return "closed its answers" + p.prints.said()
	}
	limits := sandbox.PythonReference.Limits()
	switch r := p.result; {
	case r.OutOfMemory:
		return fmt.Sprintf("needs more than %d GiB of memory (make the shapes smaller, or compute in parts)", limits.Memory>>30)
	case r.OutputTruncated:
		return fmt.Sprintf("prints more than %d MiB (print less)", limits.Output>>20)
	case r.Signal != 0:
		return fmt.Sprintf("ended by %v%s", r.Signal, p.prints.said())
	default:
		return fmt.Sprintf("ended with exit code %d%s", r.ExitCode, p.prints.said())
	}
}

// A tail keeps the end of what the reference prints.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data...)
	t.text = t.text[max(len(t.text)-1000, 0):]
	return len(data), nil
}

func (t *tail) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.Join(strings.Fields(string(t.text)), " "); text != "" {
		return ": " + text
	}
	return ""
}
