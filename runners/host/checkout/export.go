package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Export writes those files of a folder at a revision that keep selects below another folder. It
// leaves out links and other special files: they could lead anywhere.
func (r *Repo) Export(ctx context.Context, rev, folder, to string, keep func(rel string) bool) error {
	folder = withoutTop(folder)
	export := r.exportCommit
	if rev == workTree {
		export = r.exportWorkTree
	}
	inside := func(name string) string { return strings.TrimPrefix(name, folder+"/") }
	err := export(ctx, rev, folder,
		func(name string) bool { rel := inside(name); return filepath.IsLocal(rel) && keep(rel) },
		func(name string, content io.Reader, executable bool) error {
			return put(filepath.Join(to, filepath.FromSlash(inside(name))), content, executable)
		})
	if err != nil {
		return fmt.Errorf("exporting %s: %w", folder, err)
	}
	return nil
}

func put(target string, content io.Reader, executable bool) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// A taker receives a file by its path from the repository's top.
type taker func(name string, content io.Reader, executable bool) error

func (r *Repo) exportWorkTree(ctx context.Context, _, folder string, keep func(string) bool, take taker) error {
	files, err := r.filesWorkTree(ctx, folder)
	if err != nil {
		return err
	}
	for _, name := range files {
		if !keep(name) {
			continue
		}
		data, executable, err := r.readWorkTree(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errOddFile) {
			continue
		}
		if err == nil {
			err = take(name, bytes.NewReader(data), executable)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exportCommit knows how much it will write before it writes anything.
func (r *Repo) exportCommit(ctx context.Context, rev, folder string, keep func(string) bool, take taker) error {
	files, err := r.regular(ctx, rev, []string{folder}, keep)
	if err != nil {
		return err
	}
	if r.limits != nil {
		if err := r.room(files); err != nil {
			return err
		}
	}
	return r.contents(ctx, files, func(f file, content io.Reader) error {
		err := take(f.name, content, f.executable)
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) {
			return refuse(f.name, "it is a file on one side and a folder on the other, and both would be needed (give it another name)")
		}
		return err
	})
}

// room refuses more files than one export may write, and more bytes than all exports together may
// write.
func (r *Repo) room(files []file) error {
	var sum int64
	for i, f := range files {
		if err := checkPath(f.name); err != nil {
			return err
		}
		sum += f.size
		if i >= r.limits.Files || sum > r.limits.Bytes {
			return refuse(f.name, "up to here the folder has %d files and %d MiB, more than are taken (%d files, %d MiB): keep large or generated files out of the kernel's folder",
				i+1, sum>>20, r.limits.Files, r.limits.Bytes>>20)
		}
	}
	if r.written += sum; r.written > r.limits.Written {
		return refuse("", "the folders of all kernels that it touches have more than %d MiB (no more are taken; make several changes of it)", r.limits.Written>>20)
	}
	return nil
}

// ReadAll returns the contents of files at a commit, by name. Names that are not regular files
// there are left out.
func (r *Repo) ReadAll(ctx context.Context, rev string, names []string) (map[string][]byte, error) {
	texts := make(map[string][]byte)
	if len(names) == 0 {
		return texts, nil
	}
	files, err := r.regular(ctx, rev, names, func(string) bool { return true })
	for _, f := range files {
		if r.limits != nil && f.size > r.limits.Text {
			err = refuse(f.name, "it is %d bytes long (at most %d are read)", f.size, r.limits.Text)
		}
	}
	if err == nil {
		err = r.contents(ctx, files, func(f file, content io.Reader) error {
			data, err := io.ReadAll(content)
			texts[f.name] = data
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading files at %.12s: %w", rev, err)
	}
	return texts, nil
}

// A file is a regular file of a commit.
type file struct {
	name, object string
	executable   bool
	size         int64
}

// regular lists the regular files below some paths of a commit, with their sizes.
func (r *Repo) regular(ctx context.Context, rev string, paths []string, keep func(name string) bool) ([]file, error) {
	var files []file
	sizes := map[string]int64{}
	err := r.walking(ctx, func(w *walk) error {
		for _, name := range paths {
			err := w.below(rev, name, func(name string, n node) error {
				if !n.regular() || !keep(name) {
					return nil
				}
				files = append(files, file{name: name, object: n.object, executable: n.executable()})
				sizes[n.object] = 0
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		return nil, err
	}
	var unknown []string
	for object := range sizes {
		if known := r.memo.get("blob " + object); known != nil {
			sizes[object] = int64(len(known))
			continue
		}
		unknown = append(unknown, object)
	}
	err = r.blobs(ctx, "--batch-check", unknown, func(rd *reader, i int, a answer) error {
		sizes[unknown[i]] = a.size
		return nil
	})
	for i := range files {
		files[i].size = sizes[files[i].object]
	}
	return files, err
}

// contents passes the files to take one by one.
func (r *Repo) contents(ctx context.Context, files []file, take func(file, io.Reader) error) error {
	known, unknown := map[string][]byte{}, []string{}
	for _, f := range files {
		if data := r.memo.get("blob " + f.object); data != nil {
			known[f.object] = data
		} else {
			unknown = append(unknown, f.object)
		}
	}
	next := 0 // the first file that was not passed yet
	upTo := func(object string) error {
		for ; next < len(files) && files[next].object != object; next++ {
			f := files[next]
			if err := take(f, bytes.NewReader(known[f.object])); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	}
	err := r.blobs(ctx, "--batch", unknown, func(rd *reader, i int, a answer) error {
		if err := upTo(unknown[i]); err != nil {
			return err
		}
		f := files[next]
		next++
		var head bytes.Buffer
		err := rd.content(a, func(content io.Reader) error {
			if r.memo != nil && f.size <= maxAnswer {
				content = io.TeeReader(content, &head)
			}
			return take(f, content)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if int64(head.Len()) == f.size {
			r.memo.keep("blob "+f.object, head.Bytes())
		}
		return nil
	})
	if err != nil {
		return err
	}
	return upTo("")
}

// blobs asks git for contents of files.
func (r *Repo) blobs(ctx context.Context, how string, objects []string, see func(rd *reader, i int, a answer) error) error {
	if len(objects) == 0 {
		return nil
	}
	rd, err := r.borrow(ctx, how)
	if err != nil {
		return err
	}
	return rd.giveBack(rd.each(objects, func(i int, a answer) error {
		if a.id != objects[i] || a.kind != "blob" {
			return fmt.Errorf("git cat-file has %q for the file %s", a.kind, objects[i])
		}
		return see(rd, i, a)
	}))
}
