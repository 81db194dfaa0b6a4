package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// Installed is the compilers of a host: those that it finds, and those that its operator has named.
// A policy picks among them by version and digest; a change cannot name any other.
type Installed struct {
	Paths  []string // folders of further CUDA toolkits and Tritons, or a Python that has a Triton
	Getenv func(string) string
	Cache  *Cache // of their output, and of their digests; nil caches nothing
	// Handover is as in CUDA and Triton.
	Handover *Handover
}

// CUDA returns the pinned compiler or, without a pin, the one that FindCUDA finds.
func (i Installed) CUDA(ctx context.Context, pin *policy.Toolchain) (*CUDA, error) {
	if pin == nil {
		c, err := FindCUDA(ctx, i.Getenv)
		if err == nil {
			c.Cache, c.Handover = i.Cache, i.Handover
		}
		return c, err
	}
	all, broken := i.cudas(ctx)
	return pick(i, policy.NVCC, all, broken, pin, func(c *CUDA, digest string) { c.Cache, c.Handover, c.Digest = i.Cache, i.Handover, digest })
}

// Triton returns the pinned Triton or, without a pin, the one that FindTriton finds.
func (i Installed) Triton(ctx context.Context, pin *policy.Toolchain) (*Triton, error) {
	if pin == nil {
		t, err := FindTriton(ctx, i.Getenv)
		if err == nil {
			t.Cache, t.Handover = i.Cache, i.Handover
		}
		return t, err
	}
	all, broken := i.tritons(ctx)
	return pick(i, policy.Triton, all, broken, pin, func(t *Triton, digest string) { t.Cache, t.Handover, t.Digest = i.Cache, i.Handover, digest })
}

// A pinnable compiler has a version and a digest.
type pinnable interface {
	*CUDA | *Triton
	version() string
	place() string
	files() ([]string, error)
}

func (c *CUDA) version() string   { return c.Version }
func (c *CUDA) place() string     { return c.Home }
func (t *Triton) version() string { return t.Version }
func (t *Triton) place() string   { return t.Folder }

// pick returns the first compiler with the pin's version and digest.
func pick[C pinnable](i Installed, kind string, all []C, broken error, pin *policy.Toolchain, use func(C, string)) (C, error) {
	var has, other []string
	for _, c := range all {
		if has = append(has, c.version()+" in "+c.place()); c.version() != pin.Version {
			continue
		}
		if pin.Digest == "" {
			use(c, "")
			return c, nil
		}
		digest, err := digestOf(c, i.Cache)
		if err != nil {
			return nil, err
		}
		if digest == pin.Digest {
			use(c, digest)
			return c, nil
		}
		other = append(other, fmt.Sprintf("that in %s has %s", c.place(), digest))
	}
	if len(other) > 0 {
		return nil, fmt.Errorf("the policy pins %s %s with the digest %s, and no installed one has it: %s (install it as it was released, or pin what is there)", kind, pin.Version, pin.Digest, strings.Join(other, "; "))
	}
	known := "it has none"
	if len(has) > 0 {
		known = "it has " + strings.Join(has, "; ")
	}
	err := fmt.Errorf("the policy pins %s %s, which this host does not have (%s): install it and name its folder by --toolchain, or in runner.toolchains of the bot's configuration", kind, pin.Version, known)
	return nil, errors.Join(err, broken)
}

// cudas lists the working compilers, the host's default first.
func (i Installed) cudas(ctx context.Context) (all []*CUDA, broken error) {
	add := func(c *CUDA, err error) {
		if err == nil && !slices.ContainsFunc(all, func(o *CUDA) bool { return o.Home == c.Home }) {
			all = append(all, c)
		}
	}
	add(FindCUDA(ctx, i.Getenv))
	for _, path := range i.Paths {
		if nvcc := nvccBelow(path); nvcc != "" {
			c, err := i.cudaAt(ctx, nvcc)
			if err != nil {
				broken = errors.Join(broken, fmt.Errorf("the toolchain %s: %w", path, err))
			}
			add(c, err)
		}
	}
	for _, nvcc := range fetched(i.Getenv) {
		add(i.cudaAt(ctx, nvcc))
	}
	return all, broken
}

// nvccBelow returns the nvcc of a CUDA toolkit at a path; "" if there is none.
func nvccBelow(path string) string {
	for _, name := range []string{filepath.Join(path, "bin", "nvcc"), path} {
		if real, ok := program(name); ok && filepath.Base(real) == "nvcc" {
			return name
		}
	}
	return ""
}

func (i Installed) cudaAt(ctx context.Context, nvcc string) (*CUDA, error) {
	c, err := tryNVCC(ctx, nvcc)
	if err == nil {
		err = c.equip(ctx, i.Getenv)
	}
	return c, err
}

// tritons lists the installed Tritons, the host's default first.
func (i Installed) tritons(ctx context.Context) (all []*Triton, broken error) {
	find := i.python(ctx)
	p, broken := find()
	if broken == nil {
		all, broken = p.tritons(i.Getenv)
	}
	if errors.Is(broken, ErrNoTriton) {
		broken = nil
	}
	for _, path := range i.Paths {
		if nvccBelow(path) != "" {
			continue
		}
		t, err := i.tritonAt(ctx, path, find)
		if err != nil {
			broken = errors.Join(broken, fmt.Errorf("the toolchain %s: %w", path, err))
		} else if !slices.ContainsFunc(all, func(o *Triton) bool { return o.Folder == t.Folder && o.Python == t.Python }) {
			all = append(all, t)
		}
	}
	return all, broken
}

// python returns the host's Python, which is started once, however many Tritons it has.
func (i Installed) python(ctx context.Context) func() (python, error) {
	return sync.OnceValues(func() (python, error) { return findPython(ctx, i.Getenv) })
}

// tritonAt returns a Triton by its folder, or by the Python that has it.
func (i Installed) tritonAt(ctx context.Context, path string, find func() (python, error)) (*Triton, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		p, err := askedPython(ctx, path)
		if err == nil && p.Triton == "" {
			err = errors.New("this Python has no Triton")
		}
		if err != nil {
			return nil, err
		}
		return p.checked(p.Triton, i.Getenv)
	}
	p, err := find()
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{filepath.Join(path, "triton"), path} {
		if _, err := os.Stat(filepath.Join(folder, "__init__.py")); err != nil {
			continue
		}
		t, err := p.checked(folder, i.Getenv)
		if err == nil {
			t.path = []string{filepath.Dir(folder)}
		}
		return t, err
	}
	return nil, errors.New("it holds neither bin/nvcc nor the package triton, and is no Python")
}

// A Compiler describes one compiler of a host, for people.
type Compiler struct {
	Kind, Version, Place, Digest string
	Err                          error // why its digest is unknown
}

// List returns every compiler that a policy can pin here.
func (i Installed) List(ctx context.Context) ([]Compiler, error) {
	cudas, broken := i.cudas(ctx)
	tritons, more := i.tritons(ctx)
	var all []Compiler
	for _, c := range cudas {
		digest, err := digestOf(c, i.Cache)
		all = append(all, Compiler{policy.NVCC, c.Version, c.Home, digest, err})
	}
	for _, t := range tritons {
		digest, err := digestOf(t, i.Cache)
		all = append(all, Compiler{policy.Triton, t.Version, t.Folder, digest, err})
	}
	return all, errors.Join(broken, more)
}

// Kinds returns which kinds of compilers this host has. Nothing is compiled without an nvcc.
func (i Installed) Kinds(ctx context.Context) ([]string, error) {
	if _, err := FindCUDA(ctx, i.Getenv); err != nil && !errors.Is(err, ErrNoCUDA) {
		return nil, err // a named compiler does not work
	}
	cudas, broken := i.cudas(ctx)
	if len(cudas) == 0 {
		return nil, errors.Join(ErrNoCUDA, broken)
	}
	if tritons, _ := i.tritons(ctx); len(tritons) > 0 {
		return []string{policy.NVCC, policy.Triton}, nil
	}
	return []string{policy.NVCC}, nil
}

// Named resolves a path, or a name such as triton@3.9.0, to a pin.
func (i Installed) Named(ctx context.Context, text string) (kind string, pin policy.Toolchain, err error) {
	if kind, version, ok := strings.Cut(text, "@"); ok && slices.Contains(policy.ToolchainKinds(), kind) && policy.IsToolchainVersion(version) {
		return kind, policy.Toolchain{Version: version}, nil
	}
	if !filepath.IsAbs(text) {
		return "", pin, fmt.Errorf("%q is no compiler (write e.g. triton@3.9.0, nvcc@13.0.88, or the folder that one is installed in)", text)
	}
	if nvcc := nvccBelow(text); nvcc != "" {
		c, err := i.cudaAt(ctx, nvcc)
		if err != nil {
			return "", pin, err
		}
		return policy.NVCC, policy.Toolchain{Version: c.Version}, nil
	}
	t, err := i.tritonAt(ctx, text, i.python(ctx))
	if err != nil {
		return "", pin, fmt.Errorf("%s: %w", text, err)
	}
	return policy.Triton, policy.Toolchain{Version: t.Version}, nil
}
