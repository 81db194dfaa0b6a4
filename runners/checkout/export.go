package checkout

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Export writes the files of a folder at a revision, those that keep agrees to,
// below another folder. Of a commit, links and other odd files are left out: they could
// lead anywhere.
func (r *Repo) Export(ctx context.Context, rev, folder, to string, keep func(rel string) bool) error {
	write := func(rel string, data []byte, executable bool) error {
		target := filepath.Join(to, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if executable {
			mode = 0o755
		}
		return os.WriteFile(target, data, mode)
	}
	export := r.exportCommit
	if rev == WorkTree {
		export = r.exportWorkTree
	}
	err := export(ctx, rev, folder, func(rel string) bool { return filepath.IsLocal(rel) && keep(rel) }, write)
	if err != nil {
		return fmt.Errorf("exporting %s: %w", folder, err)
	}
	return nil
}

type writer func(name string, data []byte, executable bool) error

func (r *Repo) exportWorkTree(ctx context.Context, rev, folder string, keep func(string) bool, write writer) error {
	files, err := r.Files(ctx, rev, folder)
	if err != nil {
		return err
	}
	for _, name := range files {
		rel := strings.TrimPrefix(name, folder+"/")
		if !keep(rel) {
			continue
		}
		data, executable, err := r.readWorkTree(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = write(rel, data, executable)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exportCommit asks git twice, however many files there are: a process for each would take
// longer than all of the rest.
func (r *Repo) exportCommit(ctx context.Context, rev, folder string, keep func(string) bool, write writer) error {
	return r.each(ctx, rev, []string{folder}, func(name string) bool { return keep(strings.TrimPrefix(name, folder+"/")) },
		func(name string, data []byte, executable bool) error {
			return write(strings.TrimPrefix(name, folder+"/"), data, executable)
		})
}

// ReadAll is the contents of files at a commit, by name. What the commit does not have as
// a regular file is left out.
func (r *Repo) ReadAll(ctx context.Context, rev string, names []string) (map[string][]byte, error) {
	texts := make(map[string][]byte)
	if len(names) == 0 {
		return texts, nil
	}
	err := r.each(ctx, rev, names, func(string) bool { return true }, func(name string, data []byte, _ bool) error {
		texts[name] = data
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading files at %.12s: %w", rev, err)
	}
	return texts, nil
}

// each hands over the regular files below some paths of a commit.
func (r *Repo) each(ctx context.Context, rev string, paths []string, keep func(name string) bool, take writer) error {
	out, err := r.git(ctx, append([]string{"ls-tree", "-r", "-z", "--full-tree", rev, "--"}, paths...)...)
	if err != nil {
		return err
	}
	type file struct {
		object, name string
		executable   bool
	}
	var files []file
	var objects strings.Builder
	for _, line := range split(out) {
		what, name, _ := strings.Cut(line, "\t") // mode, kind and object; path
		fields := strings.Fields(what)
		if len(fields) != 3 || !strings.HasPrefix(fields[0], "100") || !keep(name) {
			continue
		}
		files = append(files, file{fields[2], name, fields[0] == "100755"})
		objects.WriteString(fields[2] + "\n")
	}
	known := make([][]byte, len(files))
	for i, f := range files {
		known[i] = r.memo.get(f.object)
	}
	if !slices.ContainsFunc(known, func(data []byte) bool { return data == nil }) {
		for i, f := range files {
			if err := take(f.name, slices.Clone(known[i]), f.executable); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	}
	return r.blobs(ctx, objects.String(), func(out *bufio.Reader) error {
		for _, f := range files {
			data, err := nextBlob(out, f.object)
			if err == nil {
				r.memo.keep(f.object, data)
				err = take(f.name, data, f.executable)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	})
}

// blobs lets read have git's answer about objects, one a line.
func (r *Repo) blobs(ctx context.Context, objects string, read func(*bufio.Reader) error) error {
	cmd, explain := r.command(ctx, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(objects)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return explain(err)
	}
	failed := read(bufio.NewReader(out))
	if failed != nil {
		_ = cmd.Process.Kill() // nobody reads on
	}
	if err := explain(cmd.Wait()); failed == nil {
		return err
	}
	return failed
}

// nextBlob reads "object blob size", the content and a line's end.
func nextBlob(out *bufio.Reader, object string) ([]byte, error) {
	line, err := out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("git cat-file ended early: %w", err)
	}
	var size int64
	if _, err := fmt.Sscanf(line, object+" blob %d\n", &size); err != nil || size < 0 {
		return nil, fmt.Errorf("git cat-file says %q of %s", strings.TrimSpace(line), object)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(out, data); err != nil {
		return nil, fmt.Errorf("git cat-file ended early: %w", err)
	}
	if _, err := out.Discard(1); err != nil {
		return nil, fmt.Errorf("git cat-file ended early: %w", err)
	}
	return data, nil
}
