package checkout

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A node is one entry of a folder in a commit.
type node struct {
	mode, object, name string
}

func (n node) folder() bool     { return n.mode == "40000" }
func (n node) regular() bool    { return strings.HasPrefix(n.mode, "100") }
func (n node) executable() bool { return n.mode == "100755" }

// A walk is one pass over the folders of commits, object by object through one git process. Git's
// own listings follow every path of a tree before they end, and its diffs keep all of them in
// memory. Here the limits hold at every step, and a folder that two commits share is not entered.
type walk struct {
	repo    *Repo
	ctx     context.Context
	limits  Limits
	git     *reader           // nil as long as everything is cached
	known   map[string][]node // folders read recently
	entries int
	bytes   int64
}

// maxKnown bounds how many folders a walk caches.
const maxKnown = 10_000

// walking calls do with a new walk.
func (r *Repo) walking(ctx context.Context, do func(*walk) error) error {
	w := &walk{repo: r, ctx: ctx, limits: *usual(), known: map[string][]node{}}
	if r.limits != nil {
		w.limits = *r.limits
	}
	err := do(w)
	if w.git != nil {
		err = w.git.giveBack(err)
	}
	return err
}

// object returns one whole object.
func (w *walk) object(id, kind string) (data []byte, err error) {
	key := kind + " " + id
	if data := w.repo.memo.get(key); data != nil {
		return data, w.read(int64(len(data)))
	}
	if w.git == nil {
		if w.git, err = w.repo.borrow(w.ctx, "--batch"); err != nil {
			return nil, err
		}
	}
	err = w.git.each([]string{id}, func(_ int, a answer) error {
		if a.id != id || a.kind != kind {
			return fmt.Errorf("git cat-file has %q for the %s %s", a.kind, kind, id)
		}
		if err := w.read(a.size); err != nil {
			return err
		}
		return w.git.content(a, func(content io.Reader) error {
			data = make([]byte, a.size)
			_, err := io.ReadFull(content, data)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	w.repo.memo.keep(key, data)
	return data, nil
}

func (w *walk) read(bytes int64) error {
	if w.bytes += bytes; w.bytes > w.limits.Trees {
		return refuse("", "the lists of files in its folders are longer than %d MiB (no more are read; make it smaller)", w.limits.Trees>>20)
	}
	return nil
}

// top returns a commit's top folder.
func (w *walk) top(rev string) (node, error) {
	var err error
	// in a mirror, a whole hash is always a commit's
	if w.repo.limits == nil || !wholeHash.MatchString(rev) {
		if rev, err = w.repo.Resolve(w.ctx, rev); err != nil {
			return node{}, err
		}
	}
	c, err := w.commit(rev)
	if err == nil && c.tree == "" {
		err = refuse("", "the commit %.12s has no folder (git fsck tells more)", rev)
	}
	return node{mode: "40000", object: c.tree}, err
}

// list returns the entries of a folder. Every entry counts against the limits, each time it is
// seen.
func (w *walk) list(folder node, at string) ([]node, error) {
	if strings.Count(at, "/") >= w.limits.Depth {
		return nil, refuse(at, "folders lie more than %d deep within each other (no more are read; make them fewer)", w.limits.Depth)
	}
	list, ok := w.known[folder.object]
	if !ok {
		data, err := w.object(folder.object, "tree")
		if err != nil {
			return nil, err
		}
		if list, err = parseTree(data, len(folder.object)/2); err != nil {
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
	return list, w.read(int64(len(list) * len(at))) // a short list may have a long path
}

// parseTree parses git's format of a folder: "mode name", a zero byte and the object's id,
// repeated. It refuses a name that could lead elsewhere or that occurs twice: git itself makes no
// such folder.
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

// join is path.Join for names that were checked. It is faster, because there may be many long
// names.
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "/" + name
}

// find follows a path down; ok is false if the commit does not have it.
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

// files visits everything below a node that is not a folder.
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

// below visits everything below a path of a commit that is not a folder.
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

// manifests returns the manifests below n, by their paths from n, without those of the top folder.
func (w *walk) manifests(n node) ([]string, error) {
	return w.named(n, "", func(at, name string) bool { return at != "" && manifest.IsManifest(name) }, map[string][]string{})
}

// named returns the files below n that match, by their paths from n. It searches each folder once,
// however many paths lead there.
func (w *walk) named(n node, at string, match func(at, name string) bool, known map[string][]string) ([]string, error) {
	if found, ok := known[n.object]; ok {
		return found, nil
	}
	list, err := w.list(n, at)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, below := range list {
		if !below.folder() {
			if match(at, below.name) {
				found = append(found, below.name)
			}
			continue
		}
		more, err := w.named(below, join(at, below.name), match, known)
		if err != nil {
			return nil, err
		}
		for _, m := range more {
			found = append(found, join(below.name, m))
		}
		if len(found) > w.limits.Kernels {
			return nil, refuse(at, "there are more than %d manifests, %s and NAME.%[2]s (no more are looked at; make them fewer)", w.limits.Kernels, manifest.FileName)
		}
	}
	known[n.object] = found
	return found, nil
}

// differ visits the names of all entries, except folders, that differ between two folders.
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
