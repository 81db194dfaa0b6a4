package checkout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// A node is one entry of a folder in a commit.
type node struct {
	mode, object, name string
}

func (n node) folder() bool     { return n.mode == "40000" }
func (n node) regular() bool    { return strings.HasPrefix(n.mode, "100") }
func (n node) executable() bool { return n.mode == "100755" }

// A walk is one pass over the folders of commits, object by object through one git
// process. git's own listings follow every path of a tree before they end, and its
// diffs keep all of them in memory: here the limits hold at every step, and a folder
// that two commits share is not entered.
type walk struct {
	limits  Limits
	memo    *memo
	begin   func() error // starts git, which is not needed for what is remembered
	cmd     *exec.Cmd
	explain func(error) error
	in      io.WriteCloser
	out     *bufio.Reader
	known   map[string][]node // folders read lately
	entries int
	bytes   int64
}

// maxKnown bounds how many folders a walk remembers.
const maxKnown = 10_000

// walking lets do look at commits.
func (r *Repo) walking(ctx context.Context, do func(*walk) error) error {
	w := &walk{limits: *usual(), memo: r.memo, known: map[string][]node{}}
	if r.limits != nil {
		w.limits = *r.limits
	}
	w.begin = func() (err error) {
		w.cmd, w.explain = r.command(ctx, "cat-file", "--batch")
		if w.in, err = w.cmd.StdinPipe(); err != nil {
			return err
		}
		out, err := w.cmd.StdoutPipe()
		if err != nil {
			return err
		}
		w.out = bufio.NewReader(out)
		return w.explain(w.cmd.Start())
	}
	failed := do(w)
	if w.cmd == nil || w.cmd.Process == nil {
		return failed
	}
	w.in.Close()
	if failed != nil {
		_ = w.cmd.Process.Kill() // nobody reads on
	}
	err := w.explain(w.cmd.Wait())
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("git cat-file: %w", context.Cause(ctx))
	case errors.As(failed, new(Refused)):
		return failed
	case failed != nil && err != nil && w.cmd.ProcessState.Exited():
		return err // git's own word is clearer than that it ended
	case failed != nil:
		return failed
	}
	return err
}

// object is one object, whole.
func (w *walk) object(name, kind string) (id string, data []byte, err error) {
	key := ""
	if hash, _, _ := strings.Cut(name, "^"); wholeHash.MatchString(hash) {
		key = kind + " " + name
	}
	if found, content, ok := bytes.Cut(w.memo.get(key), []byte("\n")); ok {
		return string(found), content, w.read(int64(len(content)))
	}
	if id, data, err = w.ask(name, kind); err == nil {
		w.memo.keep(key, slices.Concat([]byte(id), []byte("\n"), data))
	}
	return id, data, err
}

func (w *walk) ask(name, kind string) (id string, data []byte, err error) {
	if w.cmd == nil {
		if err := w.begin(); err != nil {
			return "", nil, err
		}
	}
	if _, err := fmt.Fprintln(w.in, name); err != nil {
		return "", nil, fmt.Errorf("asking git cat-file: %w", err)
	}
	line, err := w.out.ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("git cat-file ended early: %w", err)
	}
	var got string
	var size int64
	if _, err := fmt.Sscanf(line, "%s %s %d\n", &id, &got, &size); err != nil || got != kind || size < 0 {
		return "", nil, fmt.Errorf("git cat-file says %q of %s", strings.TrimSpace(line), name)
	}
	if err := w.read(size); err != nil {
		return "", nil, err
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(w.out, data); err != nil {
		return "", nil, fmt.Errorf("git cat-file ended early: %w", err)
	}
	if _, err := w.out.Discard(1); err != nil {
		return "", nil, fmt.Errorf("git cat-file ended early: %w", err)
	}
	return id, data, nil
}

func (w *walk) read(bytes int64) error {
	if w.bytes += bytes; w.bytes > w.limits.Trees {
		return refuse("", "the lists of files in its folders are longer than %d MiB (no more are read; make it smaller)", w.limits.Trees>>20)
	}
	return nil
}

// top is a commit's uppermost folder.
func (w *walk) top(rev string) (node, error) {
	if strings.ContainsAny(rev, "\n\x00") {
		return node{}, fmt.Errorf("%q is no revision", rev)
	}
	id, data, err := w.object(rev+"^{tree}", "tree")
	if err != nil {
		return node{}, err
	}
	list, err := parseTree(data, len(id)/2)
	if err != nil {
		return node{}, refuse("", "%v (git fsck tells more)", err)
	}
	w.known[id] = list
	return node{mode: "40000", object: id}, nil
}

// list is what a folder holds. Every entry counts, as often as it is seen.
func (w *walk) list(folder node, at string) ([]node, error) {
	if strings.Count(at, "/") >= w.limits.Depth {
		return nil, refuse(at, "folders lie more than %d deep within each other (no more are read; make them fewer)", w.limits.Depth)
	}
	list, ok := w.known[folder.object]
	if !ok {
		id, data, err := w.object(folder.object, "tree")
		if err != nil {
			return nil, err
		}
		if list, err = parseTree(data, len(id)/2); err != nil {
			return nil, refuse(at, "%v (git fsck tells more)", err)
		}
		if len(w.known) >= maxKnown {
			clear(w.known)
		}
		w.known[folder.object] = list
	}
	if w.entries += len(list); w.entries > w.limits.Entries {
		return nil, refuse(at, "there are more than %d files and folders up to here (no more are read; make it smaller)", w.limits.Entries)
	}
	return list, w.read(int64(len(list) * len(at))) // a short list may have a long way there
}

// parseTree reads git's form of a folder: "mode name", a zero byte and the object's
// id, again and again. A name that could lead elsewhere, or comes twice, is in no
// folder that git itself makes.
func parseTree(data []byte, idBytes int) ([]node, error) {
	var list []node
	seen := map[string]bool{}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !ok || !spaced || len(rest) < idBytes {
			return nil, errors.New("the folder's object is cut short")
		}
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || seen[name] {
			return nil, fmt.Errorf("the folder's object has the name %q, or has it twice", shown(name))
		}
		seen[name] = true
		list = append(list, node{mode: strings.TrimLeft(mode, "0"), object: hex.EncodeToString(rest[:idBytes]), name: name})
		data = rest[idBytes:]
	}
	return list, nil
}

// join is path.Join for names that were checked: there may be many of them, and long
// ones.
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "/" + name
}

// find goes down a path; ok is false where the commit does not have it.
func (w *walk) find(top node, name string) (at node, ok bool, err error) {
	at = top
	if name = path.Clean(name); name == "." {
		return at, true, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !at.folder() {
			return node{}, false, nil
		}
		list, err := w.list(at, "")
		if err != nil {
			return node{}, false, err
		}
		i := slices.IndexFunc(list, func(n node) bool { return n.name == part })
		if i < 0 {
			return node{}, false, nil
		}
		at = list[i]
	}
	return at, true, nil
}

// files visits all that is no folder below a node.
func (w *walk) files(n node, at string, visit func(name string, n node) error) error {
	if !n.folder() {
		return visit(at, n)
	}
	list, err := w.list(n, at)
	for _, below := range list {
		if err == nil {
			err = w.files(below, join(at, below.name), visit)
		}
	}
	return err
}

// below visits all that is no folder below a path of a commit.
func (w *walk) below(rev, name string, visit func(name string, n node) error) error {
	top, err := w.top(rev)
	if err != nil {
		return err
	}
	n, ok, err := w.find(top, name)
	if err != nil || !ok {
		return err
	}
	return w.files(n, strings.TrimPrefix(path.Clean("/"+name), "/"), visit)
}

// manifestName makes a folder a kernel's.
const manifestName = "kernel.yaml"

// kernels is the folders below n that hold a manifest, each by its path from n.
// A folder is looked through once, however many paths lead there.
func (w *walk) kernels(n node, at string, known map[string][]string) ([]string, error) {
	if found, ok := known[n.object]; ok {
		return found, nil
	}
	list, err := w.list(n, at)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, below := range list {
		if below.name == manifestName && !below.folder() && at != "" {
			found = append(found, ".")
		}
		if !below.folder() {
			continue
		}
		more, err := w.kernels(below, join(at, below.name), known)
		if err != nil {
			return nil, err
		}
		for _, m := range more {
			found = append(found, path.Join(below.name, m))
		}
		if len(found) > w.limits.Kernels {
			return nil, refuse(at, "more than %d folders hold a %s (no more are looked at; make them fewer)", w.limits.Kernels, manifestName)
		}
	}
	known[n.object] = found
	return found, nil
}

// differ visits the names of all that is no folder and differs between two of them.
func (w *walk) differ(was, is node, at string, visit func(name string) error) error {
	if was == is {
		return nil
	}
	side := func(n node) (map[string]node, error) {
		all := map[string]node{}
		if !n.folder() {
			return all, nil
		}
		list, err := w.list(n, at)
		for _, below := range list {
			all[below.name] = below
		}
		return all, err
	}
	before, err := side(was)
	if err != nil {
		return err
	}
	after, err := side(is)
	if err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b, a, full := before[name], after[name], join(at, name)
		if a == b {
			continue
		}
		if !b.folder() && b.mode != "" || !a.folder() && a.mode != "" {
			if err := visit(full); err != nil {
				return err
			}
		}
		if err := w.differ(b, a, full, visit); err != nil {
			return err
		}
	}
	return nil
}
