package includes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// What a set may have at most. The largest libraries of headers have a tenth of it.
const (
	maxFiles = 50_000
	maxBytes = 1 << 30
)

// A Set is what a folder of headers holds.
type Set struct {
	Version string // by its VERSION file or by git; "" where neither tells
	Hash    string // of names and contents
	Files   int
}

func (s Set) String() string {
	if s.Version == "" {
		return "sha256 " + s.Hash
	}
	return s.Version + ", sha256 " + s.Hash
}

// Look reads a folder.
func Look(folder string) (Set, error) { return lay(folder, "") }

// lay copies a folder and says what was copied; to "" nothing is. A link may lead to
// another file of the folder and nowhere else.
func lay(folder, to string) (Set, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Set{}, err
	}
	defer root.Close()
	set, sum, bytes := Set{Version: versionOf(folder)}, sha256.New(), int64(0)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := root.Stat(name)
		if err != nil {
			return fmt.Errorf("%s: %w (put the file itself there)", name, err)
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a link to a folder (put the folder itself there)", name)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		if set.Files, bytes = set.Files+1, bytes+info.Size(); set.Files > maxFiles || bytes > maxBytes {
			return fmt.Errorf("it has more than %d files or %d MiB (name the folder of the headers alone)", maxFiles, maxBytes>>20)
		}
		content, err := copyFile(root, name, to)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %x\n", name, content)
		return nil
	})
	if err == nil && set.Files == 0 {
		err = errors.New("the folder is empty")
	}
	set.Hash = hex.EncodeToString(sum.Sum(nil))
	return set, err
}

// copyFile returns the hash of what it copied. Everybody may read it: a sandbox's programs
// do so as another user.
func copyFile(root *os.Root, name, to string) ([]byte, error) {
	from, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	sum := sha256.New()
	if to == "" {
		_, err = io.Copy(sum, from)
		return sum.Sum(nil), err
	}
	target := filepath.Join(to, filepath.FromSlash(name))
	if err := makeFolders(to, filepath.Dir(target)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.MultiWriter(f, sum), from)
	return sum.Sum(nil), errors.Join(err, f.Chmod(0o644), f.Close())
}

// makeFolders makes dir, and opens it and those above it up to the one that holds all sets.
func makeFolders(to, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil || dir == filepath.Dir(to) {
			return err
		}
	}
}

// versionOf is what a folder of headers, or the one above it, calls itself.
func versionOf(folder string) string {
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		text, err := os.ReadFile(filepath.Join(dir, "VERSION"))
		if line, _, _ := strings.Cut(string(text), "\n"); err == nil && plain(line) != "" {
			return plain(line)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if out, err := exec.CommandContext(ctx, "git", "-C", dir, "describe", "--tags", "--always", "--dirty").Output(); err == nil {
			return plain(string(out))
		}
	}
	return ""
}

// plain is a version as it may stand in a record.
func plain(text string) string {
	text = strings.TrimSpace(text)
	const most = 100
	if len(text) > most || strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) }) {
		return ""
	}
	return text
}
