package planner

import (
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// The release is the tag with the highest version, without pre-releases. Only annotated tags count if there
// are any, and build metadata has no rank. If no tag is a version, it is the newest annotated tag.
func TestRelease(t *testing.T) {
	at := func(day int, name string, annotated bool) checkout.Tag {
		return checkout.Tag{Name: name, Annotated: annotated, At: time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC)}
	}
	for name, c := range map[string]struct {
		tags []checkout.Tag
		want string
	}{
		"none":                  {nil, ""},
		"by version, not date":  {[]checkout.Tag{at(1, "v1.10.0", true), at(2, "v1.9.3", true), at(3, "v0.20.0", true)}, "v1.10.0"},
		"light above annotated": {[]checkout.Tag{at(1, "v1.9.3", true), at(2, "v99.0.0", false), at(3, "v99.0.0+x", false)}, "v1.9.3"},
		"only light":            {[]checkout.Tag{at(1, "v1.9.3", false), at(2, "v1.10.0", false), at(3, "spring", true)}, "v1.10.0"},
		"without a v":           {[]checkout.Tag{at(1, "1.2.0", false), at(2, "1.1.9", false)}, "1.2.0"},
		"no pre-release":        {[]checkout.Tag{at(1, "v1.2.0", false), at(2, "v1.3.0-rc.1", true)}, "v1.2.0"},
		"with a build":          {[]checkout.Tag{at(1, "v1.2.0+cuda13", true), at(2, "v1.1.0", true)}, "v1.2.0+cuda13"},
		"a build and the plain": {[]checkout.Tag{at(1, "v1.2.0", true), at(2, "v1.2.0+x", true), at(3, "v1.2.0+z", true)}, "v1.2.0"},
		"two builds":            {[]checkout.Tag{at(2, "v1.2.0+z", true), at(1, "v1.2.0+a", true), at(3, "v1.2.0+0", true)}, "v1.2.0+a"},
		"no version":            {[]checkout.Tag{at(1, "v1.2.0", true), at(2, "v9.0.0+", true), at(3, "v9.0.0+a..b", true), at(4, "vv9.0.0", true), at(5, "v9.0.0.0", true), at(6, "v9.0.0-rc.1+x", true), at(7, "v9.0+1.2", true)}, "v1.2.0"},
		"annotated":             {[]checkout.Tag{at(1, "spring", true), at(2, "summer", true), at(3, "nightly", false)}, "summer"},
		"half versions":         {[]checkout.Tag{at(1, "v2", true), at(2, "v1.2", true), at(3, "release-7", false)}, "v1.2"},
		"zeros":                 {[]checkout.Tag{at(1, "v01.2.3", false), at(2, "v0.0.1", false)}, "v0.0.1"},
		"light ones alone":      {[]checkout.Tag{at(1, "nightly", false)}, ""},
	} {
		if got := release(c.tags).Name; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
