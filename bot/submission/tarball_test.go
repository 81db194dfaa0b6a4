package submission

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// An entry of a tarball. Its type is a plain file's unless given.
type entry struct {
	tar.Header
	text string
}

func file(name, text string) entry { return entry{tar.Header{Name: name}, text} }

// archive writes a tar. It writes what a hostile program could write, as far as the library lets it.
func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		h.Size = int64(len(e.text))
		if h.Mode == 0 && h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatalf("%q: %v", h.Name, err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packed(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// edited changes the bytes of the first header and repairs its checksum.
func edited(data []byte, change func(header []byte)) []byte {
	data = bytes.Clone(data)
	change(data[:512])
	copy(data[148:156], "        ")
	sum := 0
	for _, c := range data[:512] {
		sum += int(c)
	}
	copy(data[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

// special is an archive with a header for another header, which names or describes the next file.
func special(t testing.TB, typeflag byte, size int) []byte {
	return edited(archive(t, file("x", strings.Repeat("n", size)), file("a.c", "x")), func(h []byte) { h[156] = typeflag })
}

// A tarball is the same submission as its files, compressed or not, and however tar has written the names.
func TestTarballIsItsFiles(t *testing.T) {
	files := map[string]string{"softmax.c": "int x;\n", "sub/a.h": "// ü\n", "empty.h": ""}
	want := Asked{Kernel: "softmax", Files: files}
	plain := archive(t, entry{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": strings.Repeat("a", 40)}}},
		entry{Header: tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}}, file("./softmax.c", "int x;\n"),
		entry{Header: tar.Header{Name: "sub/", Typeflag: tar.TypeDir, Mode: 0o755}}, file("sub/a.h", "// ü\n"), file("empty.h", ""))
	for name, data := range map[string][]byte{"tar": plain, "tar.gz": zipped(t, plain), "padded": append(bytes.Clone(plain), make([]byte, 8192)...)} {
		got, err := Asked{Kernel: "softmax", Tarball: packed(data)}.ready()
		if err != nil || got.Tarball != "" || !maps.Equal(got.Files, files) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if got.digest(result.Probe) != want.digest(result.Probe) {
			t.Errorf("%s is a different submission than its files", name)
		}
	}
}

// TestTarballAttacks sends what archives have been used for against programs that unpack them. Each has one
// message that says what is wrong.
func TestTarballAttacks(t *testing.T) {
	good := archive(t, file("a.c", "int x;\n"))
	big := strings.Repeat("x", maxBytes/2+1)
	many := make([]entry, 0, maxFiles+1)
	for n := range maxFiles + 1 {
		many = append(many, file(fmt.Sprintf("f%d.h", n), "x"))
	}
	folders := make([]entry, 0, maxEntries+1)
	for n := range maxEntries + 1 {
		folders = append(folders, entry{Header: tar.Header{Name: fmt.Sprintf("d%d/", n), Typeflag: tar.TypeDir}})
	}
	of := func(typeflag byte, name, link string) []byte {
		return archive(t, entry{Header: tar.Header{Name: name, Linkname: link, Typeflag: typeflag, Format: tar.FormatGNU}})
	}
	sparse := edited(archive(t, entry{Header: tar.Header{Name: "a.c", Format: tar.FormatGNU}, text: "x"}), func(h []byte) { h[156] = tar.TypeGNUSparse })
	for name, attack := range map[string]struct {
		data []byte
		want string
	}{
		"absolute":              {archive(t, file("/etc/cron.d/x", "x")), `"/etc/cron.d/x" in the tarball is not a name below the kernel's folder`},
		"up":                    {archive(t, file("../kernel.yaml", "x")), "not a name below the kernel's folder"},
		"up in the middle":      {archive(t, file("a/../../x", "x")), "not a name below the kernel's folder"},
		"up behind a dot":       {archive(t, file("./../x", "x")), "not a name below the kernel's folder"},
		"dots inside":           {archive(t, file("a/./b.c", "x")), "not a name below the kernel's folder"},
		"two slashes":           {archive(t, file("a//b.c", "x")), "not a name below the kernel's folder"},
		"only a dot":            {archive(t, entry{Header: tar.Header{Name: "./", Typeflag: tar.TypeDir}}), "has no files"},
		"backslash":             {archive(t, file(`a\..\x`, "x")), "characters that no source needs"},
		"line break":            {archive(t, file("a\nb.c", "x")), "characters that no source needs"},
		"name not UTF-8":        {archive(t, entry{Header: tar.Header{Name: "a\xff.c", Format: tar.FormatGNU}, text: "x"}), "characters that no source needs"},
		"symbolic link":         {of(tar.TypeSymlink, "a.c", "/etc/passwd"), `"a.c" in the tarball is a link`},
		"hard link":             {of(tar.TypeLink, "a.c", "/etc/passwd"), "is a link"},
		"link, then through it": {archive(t, entry{Header: tar.Header{Name: "d", Linkname: "/etc", Typeflag: tar.TypeSymlink}}, file("d/passwd", "x")), "is a link"},
		"character device":      {of(tar.TypeChar, "zero", ""), "is a device"},
		"block device":          {of(tar.TypeBlock, "sda", ""), "is a device"},
		"pipe":                  {of(tar.TypeFifo, "p", ""), "is a device"},
		"contiguous":            {edited(good, func(h []byte) { h[156] = tar.TypeCont }), "is no file"},
		"old sparse":            {sparse, "is a file with holes"},
		"new sparse":            {sparsePAX(t), "is a file with holes"},
		"twice":                 {archive(t, file("a.c", "one"), file("a.c", "two")), `"a.c" is in the tarball twice`},
		"twice by a dot":        {archive(t, file("a.c", "one"), file("./a.c", "two")), "is in the tarball twice"},
		"file and folder":       {archive(t, file("a", "x"), file("a/b.c", "x")), `"a" is a file and a folder`},
		"folder and file":       {archive(t, entry{Header: tar.Header{Name: "a/", Typeflag: tar.TypeDir}}, file("a", "x")), "is a file and a folder"},
		"folder outside":        {archive(t, entry{Header: tar.Header{Name: "../up/", Typeflag: tar.TypeDir}}), "not a name below"},
		"content not UTF-8":     {archive(t, file("a.c", "\x7fELF\xff")), `"a.c" in the tarball is not text in UTF-8`},
		"too many files":        {archive(t, many...), "more than 64 files"},
		"too many entries":      {archive(t, folders...), "more than 256 entries"},
		"too large together":    {archive(t, file("a.c", big), file("b.c", big)), "the files have more than 1048576 bytes"},
		"a size without bytes":  {edited(good, func(h []byte) { copy(h[124:136], "77777777777\x00") }), "the files have more than 1048576 bytes"},
		"a bomb":                {zipped(t, make([]byte, 4<<20)), "more than 1572864 bytes without compression"},
		"a bomb of names":       {zipped(t, special(t, tar.TypeGNULongName, 3<<20)), "more than 1572864 bytes without compression"},
		"a long name":           {archive(t, file(strings.Repeat("n", 5000)+".c", "x")), "has 5002 bytes (at most 200)"},
		"a huge header":         {special(t, tar.TypeXHeader, 1<<20+1), "cannot be read"},
		"cut off":               {good[:700], "was cut off"},
		"cut off in a file":     {archive(t, file("a.c", strings.Repeat("x", 2000)))[:1536], "was cut off"},
		"a second archive":      {append(bytes.Clone(good), archive(t, file("b.c", "x"))...), "goes on after its end"},
		"a second stream":       {append(zipped(t, good), zipped(t, good)...), "goes on after the end of its compressed part"},
		"cut off compressed":    {zipped(t, good)[:60], "cannot be decompressed"},
		"nothing":               {archive(t), "has no files"},
		"no archive":            {[]byte(strings.Repeat("int main;\n", 200)), "was cut off, or it is no tar"},
		"too much to send":      {make([]byte, maxPacked+3), "in base64 (at most"},
	} {
		got, err := Asked{Kernel: "k", Tarball: packed(attack.data)}.ready()
		switch bad := (usage.Error{}); {
		case err == nil:
			t.Errorf("%s: it is taken as %q", name, got.Files)
		case !strings.Contains(err.Error(), attack.want) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: %v, want %s", name, err, attack.want)
		case !asUsage(err, &bad):
			t.Errorf("%s: %v is not the caller's mistake", name, err)
		}
	}
	for text, want := range map[string]string{"%%%": "is not base64", packed(good) + "=": "is not base64", packed(good)[:10] + "\x00": "is not base64"} {
		if _, err := (Asked{Kernel: "k", Tarball: text}).ready(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	for _, both := range []Asked{{Kernel: "k", Tarball: packed(good), Ref: "main"}, {Kernel: "k", Tarball: packed(good), Files: map[string]string{"a": "b"}}} {
		if _, err := both.ready(); err == nil || !strings.Contains(err.Error(), "send one of files, tarball and ref") {
			t.Errorf("%+v: %v", both, err)
		}
	}
}

func asUsage(err error, bad *usage.Error) bool {
	found, ok := err.(usage.Error)
	*bad = found
	return ok
}

// sparsePAX is a file with a hole of 512 KiB, in the form of today's GNU tar.
func sparsePAX(t testing.TB) []byte {
	t.Helper()
	raw := archive(t, entry{Header: tar.Header{Name: "GNUSparseFile.0/a.c", PAXRecords: map[string]string{
		"XNU.sparse.major": "1", "XNU.sparse.minor": "0", "XNU.sparse.name": "a.c", "XNU.sparse.realsize": "524288",
	}}, text: "1\n0\n1\n" + strings.Repeat("\x00", 506) + "x"})
	return bytes.ReplaceAll(raw, []byte("XNU.sparse."), []byte("GNU.sparse.")) // the library refuses to write it
}

// A bomb costs no more memory than the limits say.
func TestTarballBombIsCheap(t *testing.T) {
	bomb := packed(zipped(t, make([]byte, 32<<20)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := (Asked{Kernel: "k", Tarball: bomb}).ready(); err == nil {
		t.Fatal("it is taken")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("a bomb of 32 MiB in %d bytes takes %d bytes of memory", len(bomb), took)
	}
}

// FuzzTarball checks that whatever is taken is plain files below the folder, within the limits, and that the same
// files are taken from the archive compressed and packed again. Headers get the right checksums, without which
// the library reads nothing else of them.
func FuzzTarball(f *testing.F) {
	f.Add(archive(f, file("a.c", "x"), file("sub/b.h", "y")))
	f.Add(archive(f, entry{Header: tar.Header{Name: "sub/", Typeflag: tar.TypeDir}}, file("./sub/b.h", "y")))
	f.Add(archive(f, entry{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}}, file("a.c", "x")))
	f.Add(archive(f, entry{Header: tar.Header{Name: strings.Repeat("n", 150), Format: tar.FormatGNU}, text: "x"}))
	f.Add(zipped(f, archive(f, file("./a.c", "x"))))
	f.Add(archive(f, file("a", "x"), file("a/b.c", "y")))
	f.Add(archive(f, file("sub/../../a.c", "x")))
	f.Add(archive(f, file(`a\b.c`, "x")))
	f.Add(archive(f, file("a.c", "\xff")))
	f.Add(sparsePAX(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkTaken(t, data)
		checkTaken(t, checksummed(data))
	})
}

// checkTaken unpacks an archive in three forms.
func checkTaken(t *testing.T, data []byte) {
	files, err := unpack(packed(data))
	if err != nil {
		return
	}
	bytes := 0
	for name, text := range files {
		bytes += len(text)
		if !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsAny(name, "\\\n\x00") || !utf8.ValidString(name) || !utf8.ValidString(text) {
			t.Errorf("%q is taken", name)
		}
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if _, both := files[folder]; both {
				t.Errorf("%q is a file and a folder", folder)
			}
		}
	}
	if len(files) == 0 || len(files) > maxFiles || bytes > maxBytes {
		t.Errorf("%d files with %d bytes are taken", len(files), bytes)
	}
	var entries []entry
	for name, text := range files {
		entries = append(entries, file(name, text))
	}
	for form, again := range map[string][]byte{"compressed": zipped(t, data), "packed again": archive(t, entries...)} {
		if form == "compressed" && data[0] == 0x1f {
			continue // it was compressed already
		}
		if got, err := unpack(packed(again)); err != nil || !maps.Equal(got, files) {
			t.Errorf("%s it is %q (%v), want %q", form, got, err, files)
		}
	}
}

// checksummed writes the right checksum into what would be a header, and the end of an archive behind it.
func checksummed(data []byte) []byte {
	const block = 512
	data = append(bytes.Clone(data), make([]byte, 2*block+(block-len(data)%block)%block)...)
	for at := 0; at < len(data)-2*block; {
		copy(data[at:], edited(data[at:at+block], func([]byte) {}))
		size, err := strconv.ParseInt(strings.Trim(string(data[at+124:at+136]), " \x00"), 8, 32)
		if at += block; err == nil && size >= 0 {
			at += (int(size) + block - 1) / block * block
		}
	}
	return data
}
