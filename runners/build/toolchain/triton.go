package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A TritonBuild is one Triton kernel to compile for one architecture, for several kinds of
// launches. Only the files in Dir come from the change.
type TritonBuild struct {
	Dir     string   // folder of the sources, seen read-only
	Source  string   // a file in Dir, which is imported as a module of its package
	Root    string   // folder of the repository that has the package; "" means Dir
	Include []string // further folders of the repository that modules are imported from
	// SkipInit and Stubs are those of [manifest.Manifest].
	SkipInit, Stubs []string

	Entry   string // the function of kinds that name none
	Arch    string // such as sm_90
	Kinds   []manifest.Special
	Tree    runners.Tree // where Dir lies in its repository
	Scratch string       // existing folder; the cubins come into a new one below it
	Seed    uint64       // see NVCCBuild
	Once    bool         // see NVCCBuild

	describe bool // asks for the configurations and compiles nothing
	each     bool // if a kind does not compile, the others are built all the same
}

// maxKinds bounds what is compiled for one kernel: a constant that depends on the size makes a kind
// of every size.
const maxKinds = 256

//go:embed triton_compile.py
var tritonScript []byte

//go:embed triton_standins.py
var tritonStandIns []byte

// Build compiles in the sandbox: a cubin for each kind, in their order. The kernel's own Python
// runs there, with Triton, and may do anything. Its only results are cubins, which are read like
// any other, and a launch for each, which is compared with the code. The errors are those of
// CUDA.Build.
func (t *Triton) Build(ctx context.Context, b TritonBuild) ([]*Cubin, error) {
	cubins, refused, err := t.build(ctx, b)
	for _, refusal := range refused {
		if err != nil || refusal == nil {
			continue
		}
		err = refusal
		if len(cubins) > 0 && cubins[0] != nil {
			err = errors.Join(err, os.RemoveAll(filepath.Dir(cubins[0].Path)))
		}
	}
	if err != nil {
		return nil, err
	}
	return cubins, nil
}

// BuildEach is Build for kinds that may not all compile: instead of a cubin, such a kind has the
// reason.
func (t *Triton) BuildEach(ctx context.Context, b TritonBuild) (cubins []*Cubin, refused []error, err error) {
	b.each = true
	return t.build(ctx, b)
}

func (t *Triton) build(ctx context.Context, b TritonBuild) (cubins []*Cubin, refused []error, err error) {
	if err := b.check(); err != nil {
		return nil, nil, err
	}
	made, cached, err := t.outputs(ctx, b)
	if err == nil && slices.ContainsFunc(made, func(o nvccOutput) bool { return o.Refusal == needsExact }) {
		return nil, nil, ErrNeedsExact
	}
	if err != nil {
		return nil, nil, fmt.Errorf("compiling %s for %s: %w", b.Source, b.Arch, err)
	}
	out, err := os.MkdirTemp(b.Scratch, b.Arch+"-")
	if err != nil {
		return nil, nil, fmt.Errorf("making room for the cubins of %s: %w", b.Source, err)
	}
	cubins, refused = make([]*Cubin, len(made)), make([]error, len(made))
	left := 0
	for i, o := range made {
		cubin, err := o.readTriton(b, b.Kinds[i])
		if err != nil {
			refused[i] = err
			if b.each {
				continue
			}
			break
		}
		cubin.Path, cubin.Cached = filepath.Join(out, strconv.Itoa(i)+".cubin"), cached[i]
		if err := os.WriteFile(cubin.Path, cubin.Image, 0o644); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("writing a cubin of %s: %w", b.Source, err), os.RemoveAll(out))
		}
		cubins[i] = cubin
		left++
	}
	if left == 0 {
		err = os.RemoveAll(out)
	}
	return cubins, refused, err
}

func (b TritonBuild) check() error {
	switch {
	case !archName.MatchString(b.Arch):
		return fmt.Errorf("%q is no GPU architecture (write e.g. sm_89 or sm_90)", b.Arch)
	case !filepath.IsLocal(b.Source) || !strings.HasSuffix(b.Source, ".py"):
		return fmt.Errorf("%q is no Python file within the kernel's folder (write e.g. kernel.py)", b.Source)
	case !filepath.IsAbs(b.Dir) || !filepath.IsAbs(b.Scratch):
		return fmt.Errorf("the folders %q and %q must be absolute", b.Dir, b.Scratch)
	case len(b.Kinds) == 0:
		return errors.New("no kind of launch is asked for")
	case len(b.Kinds) > maxKinds:
		return &output.CompileError{Summary: fmt.Sprintf("the kernel would be compiled %d times, once for each value of its constants and each class of its arguments: at most %d are possible (let constants follow fewer sizes, as by pow2ceil, or choose one configuration under autotune)", len(b.Kinds), maxKinds)}
	}
	return nil
}

// outputs reads what the cache has, and compiles the rest in one run.
func (t *Triton) outputs(ctx context.Context, b TritonBuild) (made []nvccOutput, cached []bool, err error) {
	made, cached = make([]nvccOutput, len(b.Kinds)), make([]bool, len(b.Kinds))
	keys := make([]string, len(b.Kinds))
	if t.Cache != nil {
		if err := os.MkdirAll(t.Cache.Dir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("making the build cache: %w", err)
		}
		if err := t.Cache.hidden(append(t.readable(), b.Dir)); err != nil {
			return nil, nil, err
		}
	}
	var missing []int
	for i, kind := range b.Kinds {

		if made[i], cached[i] = t.handed(b, kind); cached[i] {
			continue
		}
		if t.Cache != nil {
			if keys[i], err = t.cacheKey(b, kind); err != nil {
				return nil, nil, err
			}
			if made[i], cached[i] = t.Cache.load(keys[i]); cached[i] {
				continue
			}
			if b.Once {
				keys[i] = onceKey(keys[i])
				if made[i], cached[i] = t.Cache.load(keys[i]); cached[i] {
					continue
				}
			}
		}
		missing = append(missing, i)
	}
	if len(missing) == 0 {
		t.hand(b, made)
		return made, cached, nil
	}
	rest := b
	rest.Kinds = nil
	for _, i := range missing {
		rest.Kinds = append(rest.Kinds, b.Kinds[i])
	}
	fresh, err := t.compile(ctx, rest)
	if err != nil {
		return nil, nil, err
	}
	for n, i := range missing {
		made[i] = fresh[n]
		if t.Cache != nil && (fresh[n].Refusal == "" || fresh[n].Final) {
			if err := t.Cache.store(keys[i], fresh[n]); err != nil {
				t.Cache.warn("keeping a build", err)
			}
		}
	}
	t.hand(b, made)
	return made, cached, nil
}

// cacheKey names everything that a cubin depends on. The compiler is identified by its version and
// by the size and time of its library.
func (t *Triton) cacheKey(b TritonBuild, kind manifest.Special) (string, error) {
	return t.buildKey(b, kind, func(library os.FileInfo) time.Time { return library.ModTime() })
}

// handKey is the same between hosts, where the library's time is that of its installation.
func (t *Triton) handKey(b TritonBuild, kind manifest.Special) (string, error) {
	return t.buildKey(b, kind, func(os.FileInfo) time.Time { return time.Time{} })
}

func (t *Triton) buildKey(b TritonBuild, kind manifest.Special, at func(library os.FileInfo) time.Time) (string, error) {
	h := sha256.New()
	library, err := os.Stat(filepath.Join(t.Folder, "_C", "libtriton.so"))
	if err != nil {
		return "", fmt.Errorf("looking at Triton's library: %w (install Triton again)", err)
	}
	err = json.NewEncoder(h).Encode(struct {
		Version             int
		Compiler, Python    string
		Digest              string `json:",omitempty"`
		Library             int64
		Time                time.Time
		Script              [32]byte
		Memory              int64
		Source, Entry, Arch string
		Kind                string
		Tree                runners.Tree
		Root                string
		Include             []string
		SkipInit, Stubs     []string
		Packages            []string
	}{cacheVersion, t.String(), t.PythonVersion, t.Digest, library.Size(), at(library), sha256.Sum256(slices.Concat(tritonScript, tritonStandIns)), sandbox.DeviceCompiler.Limits().Memory, b.Source, b.Entry, b.Arch, kind.Key(), b.Tree, b.Root, b.Include, b.SkipInit, b.Stubs, t.packages()})
	if err == nil {
		err = folderhash.Write(h, b.Dir, nil)
	}
	if err != nil {
		return "", fmt.Errorf("naming the build of %s: %w", b.Source, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readable returns what Python may see in addition to the sources.
func (t *Triton) readable() []string { return append(sandbox.SystemPaths(), t.read...) }

// tritonEnv is Triton's environment in addition to that of its surroundings. Its cache, below HOME,
// is in memory, and ends with the process. torch asks for the user's name when it is imported, and
// the sandbox has no list of users.
var tritonEnv = append([]string{"OMP_NUM_THREADS=1"}, compilerEnv...)

// run calls a program of Python or Triton in the sandbox.
func (t *Triton) run(ctx context.Context, s sandbox.Spec, timeout time.Duration) (sandbox.Result, string, error) {
	var out bytes.Buffer
	if s.Env == nil {
		s.Env = tritonEnv
	}
	s.Stdout, s.Stderr = &out, &out
	s.Read = append(s.Read, t.readable()...)
	s.Limits = sandbox.DeviceCompiler.Limits().Until(ctx).Within(timeout)
	r, err := sandbox.Run(ctx, s)
	if err != nil {
		err = fmt.Errorf("running %s: %w", filepath.Base(s.Args[0]), err)
	}
	return r, out.String(), err
}
