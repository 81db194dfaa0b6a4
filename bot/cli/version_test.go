package cli

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"}}
	tests := []struct {
		name, main, release, commit string
		settings                    []debug.BuildSetting
		want                        string
	}{
		{name: "go install of a tag", main: "v0.1.0", want: "kernelgate v0.1.0"},
		{name: "a released program", main: "(devel)", release: "v0.1.0", commit: "0123456789ab", want: "kernelgate v0.1.0 0123456789ab"},
		{name: "make build in a work tree", main: "(devel)", commit: "0123456789ab+dirty", want: "kernelgate (devel) 0123456789ab+dirty"},
		{name: "go build with git", main: "v0.1.1-0.20260102030405-0123456789ab+dirty", commit: "ignored", settings: vcs,
			want: "kernelgate v0.1.1-0.20260102030405-0123456789ab+dirty 0123456789ab+dirty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			info := &debug.BuildInfo{Main: debug.Module{Version: tt.main}, Settings: tt.settings}
			if got := versionOf(info, tt.release, tt.commit); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
