// Package compat says which records bots of two neighbouring versions may read from each other. A newer bot reads every
// record of an older one. An older bot reads a record of a newer one only if it knows the kind and every field. It refuses all
// other records, because a fact that is applied in part is a wrong fact. The package reads no journal and knows no event.
package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

var inProgram = regexp.MustCompile(`(?:^| )(v[0-9]+\.[0-9]+\.[0-9]+[^ ]*)`)

// VersionOf returns the semantic version in the name of a program such as "kernelgate v0.2.0 4f1c0de", or "" for a build
// without one.
func VersionOf(program string) string {
	m := inProgram.FindStringSubmatch(program)
	if m == nil || !semver.IsValid(m[1]) {
		return ""
	}
	return m[1]
}

// Older reports whether version a is known to be older than version b. A build without a version is neither older nor newer
// than any other.
func Older(a, b string) bool {
	return semver.IsValid(a) && semver.IsValid(b) && semver.Compare(a, b) < 0
}

// A Writer says which version wrote a record, and which one reads it. The zero Writer stands for this program.
type Writer struct {
	Version string // of the writer; "" if the record does not say
	Reader  string // of this program
}

// mayBeNewer reports whether the writer may know fields that the reader does not. Records without a version come from
// programs that are older than this package.
func (w Writer) mayBeNewer() bool {
	return w.Version != "" && w.Version != w.Reader && !Older(w.Version, w.Reader)
}

// Decode reads a record as JSON. If a newer program may have written the record, Decode refuses fields that this program does
// not know. In records of older programs, it ignores fields that this program no longer knows.
func (w Writer) Decode(what string, data []byte, into any) error {
	if !w.mayBeNewer() {
		return json.Unmarshal(data, into)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return w.Unknown(fmt.Sprintf("the field %s of a stored %q event", field, what))
	}
	return err
}

// Unknown returns the error for a record that this program does not know.
func (w Writer) Unknown(what string) error { return &UnknownError{What: what, Writer: w} }

// An UnknownError says that another version has stored a record that this program does not know. Another try does not help.
type UnknownError struct {
	What string
	Writer
}

func (e *UnknownError) Error() string {
	by, upgrade := "a newer kernelgate", "that version or a later one"
	if e.Version != "" {
		by, upgrade = "kernelgate "+e.Version, e.Version+" or a later version"
	}
	this := "this version"
	if e.Reader != "" {
		this = "this version, " + e.Reader + ","
	}
	return fmt.Sprintf("%s wrote %s, and %s does not know it: nothing of it was applied (upgrade this bot to %s, or restore the backup of the journal from before the upgrade)", by, e.What, this, upgrade)
}

// IsUnknown reports whether an error is about a record of a newer version.
func IsUnknown(err error) bool {
	var unknown *UnknownError
	return errors.As(err, &unknown)
}
