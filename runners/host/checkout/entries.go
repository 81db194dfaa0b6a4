package checkout

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
)

// An Entry is a file, a link or a submodule of a revision.
type Entry struct {
	Kind   EntryKind
	Object string // git's hash of the content
}

// EntryKind distinguishes files from links and submodules.
type EntryKind string

const (
	RegularFile    EntryKind = "file"
	SymbolicLink   EntryKind = "link"
	SubmoduleEntry EntryKind = "submodule"
)

// Entries returns all entries of a revision below a folder, by their paths from the repository's
// top.
func (r *Repo) Entries(ctx context.Context, rev, folder string) (map[string]Entry, error) {
	folder = withoutTop(folder)
	entries := map[string]Entry{}
	if rev == workTree {
		return entries, r.entriesWorkTree(ctx, folder, entries)
	}
	err := r.walking(ctx, func(w *walk) error {
		return w.below(rev, folder, func(name string, n node) error {
			kind := RegularFile
			switch {
			case n.mode == "160000":
				kind = SubmoduleEntry
			case !n.regular():
				kind = SymbolicLink
			}
			entries[name] = Entry{kind, n.object}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing files at %.12s: %w", rev, err)
	}
	return entries, nil
}

func (r *Repo) entriesWorkTree(ctx context.Context, folder string, entries map[string]Entry) error {
	head, err := r.Resolve(ctx, "HEAD")
	if err != nil {
		return err
	}
	names, err := r.filesWorkTree(ctx, folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, _, err := r.readWorkTree(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, errOddFile):
			entries[name] = Entry{Kind: SymbolicLink}
		case err != nil:
			return err
		default:
			entries[name] = Entry{RegularFile, BlobOf(data, len(head))}
		}
	}
	return nil
}

// BlobOf returns git's hash of a file's content, in a repository whose hashes have this many
// digits.
func BlobOf(content []byte, digits int) string {
	var h hash.Hash = sha1.New()
	if digits == 2*sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}
