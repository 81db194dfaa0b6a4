package submission

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/policies/usage"
)

// Limits of a tarball, in addition to those of its files.
const (
	maxPacked  = 2 << 20            // bytes of the tarball as it is sent
	maxArchive = maxBytes + 512<<10 // bytes of the archive without compression: files, headers and padding
	maxEntries = 4 * maxFiles       // files, folders and comments
	maxName    = 200                // bytes of a name
)

// unpacked returns what is asked with the files of its tarball in place of the tarball. So a tarball is the
// same submission as its files.
func (a Asked) unpacked() (Asked, error) {
	if a.Tarball == "" {
		return a, nil
	}
	if len(a.Files) > 0 || a.Ref != "" {
		return a, usage.Errorf("send one of files, tarball and ref, not several")
	}
	files, err := unpack(a.Tarball)
	a.Files, a.Tarball = files, ""
	return a, err
}

// unpack reads the files of a tarball in base64: a .tar or .tar.gz of files below the kernel's folder. It writes
// nothing to disk. It refuses everything that is neither a plain file nor a folder, so that no two programs
// can read the same archive in different ways.
func unpack(text string) (map[string]string, error) {
	if len(text) > base64.StdEncoding.EncodedLen(maxPacked) {
		return nil, usage.Errorf("tarball has %d bytes in base64 (at most %d)", len(text), base64.StdEncoding.EncodedLen(maxPacked))
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, usage.Errorf("tarball is not base64: %w (encode the bytes of the .tar or .tar.gz with padding, as base64 does)", err)
	}
	archive, err := decompressed(data)
	if err != nil {
		return nil, err
	}
	if !ends(archive) {
		return nil, usage.Errorf("the tarball was cut off, or it is no tar (send a whole .tar or .tar.gz)")
	}
	u := unpacking{files: map[string]string{}, folders: map[string]bool{}}
	rest := bytes.NewReader(archive)
	entries := tar.NewReader(rest)
	for n := 1; ; n++ {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return nil, usage.Errorf("entry %d of the tarball cannot be read: %w (pack it again with tar)", n, err)
		case n > maxEntries:
			return nil, usage.Errorf("the tarball has more than %d entries (pack only the files that you changed)", maxEntries)
		}
		if err := u.take(h, entries); err != nil {
			return nil, err
		}
	}
	if !onlyZeros(rest) {
		return nil, usage.Errorf("the tarball goes on after its end (pack all files into one archive)")
	}
	if len(u.files) == 0 {
		return nil, usage.Errorf("the tarball has no files")
	}
	return u.files, u.conflict()
}

// decompressed is the archive without compression, within the limits.
func decompressed(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if len(data) > maxArchive {
			return nil, tooLarge()
		}
		return data, nil
	}
	var archive []byte
	in := bufio.NewReader(bytes.NewReader(data))
	zip, err := gzip.NewReader(in)
	if err == nil {
		zip.Multistream(false)
		archive, err = io.ReadAll(io.LimitReader(zip, maxArchive+1))
	}
	switch {
	case err != nil:
		return nil, usage.Errorf("the tarball cannot be decompressed: %w (send a .tar or a .tar.gz)", err)
	case len(archive) > maxArchive:
		return nil, tooLarge()
	case !onlyZeros(in):
		return nil, usage.Errorf("the tarball goes on after the end of its compressed part (compress it as a whole)")
	}
	return archive, nil
}

func tooLarge() error {
	return usage.Errorf("the tarball has more than %d bytes without compression (its files may have %d)", maxArchive, maxBytes)
}

// ends reports whether the archive has the two empty blocks at its end.
func ends(archive []byte) bool {
	const block = 512
	return len(archive)%block == 0 && len(archive) >= 2*block && onlyZeros(bytes.NewReader(archive[len(archive)-2*block:]))
}

// onlyZeros reports whether nothing but padding is left.
func onlyZeros(r io.Reader) bool {
	rest, err := io.ReadAll(r)
	return err == nil && len(bytes.Trim(rest, "\x00")) == 0
}

// unpacking is what was read of a tarball until now.
type unpacking struct {
	files   map[string]string
	folders map[string]bool
	bytes   int64
}

// take reads one entry.
func (u *unpacking) take(h *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(h.Name, "./")
	switch h.Typeflag {
	case tar.TypeXGlobalHeader: // git archive writes the commit there
		return nil
	case tar.TypeDir:
		if name = strings.TrimSuffix(name, "/"); name != "" && name != "." {
			if err := plain(h.Name, name); err != nil {
				return err
			}
			u.folders[name] = true
		}
		return nil
	case tar.TypeReg:
	default:
		return usage.Errorf("%s in the tarball is %s (send plain files)", shown(h.Name), kindOf(h.Typeflag))
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return usage.Errorf("%s in the tarball is a file with holes (pack it without --sparse)", shown(h.Name))
		}
	}
	if err := plain(h.Name, name); err != nil {
		return err
	}
	if _, twice := u.files[name]; twice {
		return usage.Errorf("%s is in the tarball twice (pack each file once)", shown(name))
	}
	if len(u.files) == maxFiles {
		return usage.Errorf("there are more than %d files in the tarball", maxFiles)
	}
	if u.bytes += h.Size; h.Size > maxBytes || u.bytes > maxBytes { // before it is read: a header costs nothing
		return usage.Errorf("the files have more than %d bytes, from %s in the tarball on", maxBytes, shown(name))
	}
	data, err := io.ReadAll(io.LimitReader(content, h.Size))
	if err != nil {
		return usage.Errorf("%s in the tarball cannot be read: %w (it was cut off)", shown(name), err)
	}
	if !utf8.Valid(data) {
		return usage.Errorf("%s in the tarball is not text in UTF-8 (send sources only)", shown(name))
	}
	u.files[name] = string(data)
	return nil
}

// plain refuses names that could lead out of the kernel's folder, or that two programs could understand
// differently.
func plain(whole, name string) error {
	odd := func(r rune) bool { return r == '\\' || r == utf8.RuneError || unicode.IsControl(r) }
	switch {
	case len(name) > maxName:
		return usage.Errorf("a name in the tarball has %d bytes (at most %d): %s", len(name), maxName, shown(name))
	case !utf8.ValidString(whole) || strings.ContainsFunc(whole, odd):
		return usage.Errorf("%s in the tarball has a name with characters that no source needs (rename it)", shown(whole))
	case !filepath.IsLocal(name) || path.Clean(name) != name:
		return usage.Errorf("%s in the tarball is not a name below the kernel's folder (pack from there: tar -C FOLDER -cz FILES)", shown(whole))
	}
	return nil
}

// conflict is about names that are files and folders.
func (u *unpacking) conflict() error {
	for name := range u.files {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			u.folders[folder] = true
		}
	}
	for name := range u.files {
		if u.folders[name] {
			return usage.Errorf("%s is a file and a folder in the tarball", shown(name))
		}
	}
	return nil
}

// kindOf names what is no plain file.
func kindOf(flag byte) string {
	switch flag {
	case tar.TypeSymlink, tar.TypeLink:
		return "a link"
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return "a device"
	case tar.TypeGNUSparse:
		return "a file with holes"
	}
	return "no file"
}

// shown is a name for a message: short, and without control characters.
func shown(name string) string {
	const most = 80
	if len(name) > most {
		name = name[:most] + "..."
	}
	return strconv.QuoteToASCII(name)
}
