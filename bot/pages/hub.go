package pages

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A place is a link to GitHub. Without a GitHub address, or if the target does not exist, it is
// text without a link.
type place struct{ Text, URL string }

// manifestSuffix ends the name of a kernel that shares its folder with others. Such a kernel is
// named by its manifest.
const manifestSuffix = "." + manifest.FileName

var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// at returns a URL below a repository at GitHub, or an empty string.
func (s *Server) at(repo string, parts ...string) string {
	if s.Web == "" || strings.Count(repo, "/") != 1 {
		return ""
	}
	return strings.TrimSuffix(s.Web, "/") + (&url.URL{Path: "/" + repo + "/" + strings.Join(parts, "/")}).EscapedPath()
}

func (s *Server) repoAt(repo string) place { return place{repo, strings.TrimSuffix(s.at(repo), "/")} }

func (s *Server) pullAt(repo string, number int) place {
	return place{"#" + strconv.Itoa(number), s.at(repo, "pull", strconv.Itoa(number))}
}

func (s *Server) issueAt(repo string, number int) place {
	return place{"issue #" + strconv.Itoa(number), s.at(repo, "issues", strconv.Itoa(number))}
}

func (s *Server) commitAt(repo, sha string) place {
	if !fullCommit.MatchString(sha) {
		return place{Text: report.Short(sha)}
	}
	return place{report.Short(sha), s.at(repo, "commit", sha)}
}

// folderAt links to a kernel's folder in a commit, or on the default branch if no commit is given.
func (s *Server) folderAt(repo, sha, folder string) place {
	if sha == "" {
		sha = "HEAD"
	} else if !fullCommit.MatchString(sha) {
		return place{Text: folder}
	}
	if strings.HasSuffix(folder, manifestSuffix) {
		return place{folder, s.at(repo, "blob", sha, folder)}
	}
	return place{folder, s.at(repo, "tree", sha, folder)}
}

// fileAt links to a line of a file that the build of a kernel names. A path outside of the
// repository gets no link.
func (s *Server) fileAt(repo, sha, folder, file string, line int) place {
	p := place{Text: file}
	if line > 0 {
		p.Text += ":" + strconv.Itoa(line)
	}
	if strings.HasSuffix(folder, manifestSuffix) {
		folder = path.Dir(folder)
	}
	whole := path.Join(folder, file)
	if !fullCommit.MatchString(sha) || file == "" || path.IsAbs(file) || strings.HasPrefix(whole, "../") {
		return p
	}
	if p.URL = s.at(repo, "blob", sha, whole); p.URL != "" && line > 0 {
		p.URL += "#L" + strconv.Itoa(line)
	}
	return p
}

// sourceAt links to a line of a file that one of a run's builds names. A negative build means the
// candidate's.
func (s *Server) sourceAt(p *RunPage, build int, file string, line int) place {
	if p.Verdict == nil || p.Change == "" {
		return s.fileAt("", "", "", file, line)
	}
	sha, from := p.Head, p.Verdict.Provenance
	if build >= 0 && build < len(p.Verdict.Builds)-1 {
		sha = cmp.Or(from.Baseline, from.Base.SHA)
	}
	return s.fileAt(p.Repo, sha, p.Folder, file, line)
}
