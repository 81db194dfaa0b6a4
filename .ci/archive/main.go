// Command archive writes a tar.gz of files that belong to root and have the time SOURCE_DATE_EPOCH.
// The bytes depend on nothing else of the machine, unlike those of tar and gzip.
//
//	archive OUT.tar.gz [NAME=|FOLDER/=]FILE…
package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: archive OUT.tar.gz [NAME=|FOLDER/=]FILE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

func run(out string, files []string, epoch string) error {
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f, files, time.Unix(seconds, 0)); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return f.Close()
}

func write(w io.Writer, files []string, modified time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		if err := add(archive, file, modified); err != nil {
			return fmt.Errorf("adding %s: %w", file, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// add writes one file. Of its mode only the bit of its owner that allows it to run is used: the others
// depend on the umask of the checkout.
func add(archive *tar.Writer, file string, modified time.Time) error {
	name, source, named := strings.Cut(file, "=")
	if !named {
		name, source = filepath.Base(file), file
	} else if strings.HasSuffix(name, "/") {
		name = path.Join(name, filepath.Base(source))
	}
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	header := tar.Header{Name: name, Mode: mode, Size: info.Size(), ModTime: modified, Uname: "root", Gname: "root"}
	if err := archive.WriteHeader(&header); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}
