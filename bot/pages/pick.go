package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Limits of the pickers.
const (
	pickKernels = 200
	pickRuns    = 40
)

// A KernelName is a kernel of a repository that the viewer may read.
type KernelName struct {
	Repo   string `json:"repository"`
	Folder string `json:"folder"`
	// Value is used in forms: the folder, with the repository if several have that folder.
	Value string `json:"value"`
	repo  int64
}

// A Choice is a run that a picker offers.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// errWhichKernel is returned for a name that means a run of every kernel, such as main.
var errWhichKernel = errors.New("which kernel?")

// kernelNames returns every kernel that the viewer may read, by repository and folder.
func (s *Server) kernelNames(ctx context.Context, v *visit) ([]KernelName, error) {
	repos, err := s.repos(ctx, v)
	if err != nil {
		return nil, err
	}
	var list []KernelName
	times := map[string]int{}
	for _, id := range slices.SortedFunc(maps.Keys(repos), func(a, b int64) int { return cmp.Or(cmp.Compare(repos[a], repos[b]), cmp.Compare(a, b)) }) {
		folders, err := s.Source.Kernels(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			if len(list) < pickKernels {
				list = append(list, KernelName{Repo: repos[id], Folder: folder, Value: folder, repo: id})
				times[folder]++
			}
		}
	}
	for i, k := range list {
		if times[k.Folder] > 1 {
			list[i].Value = k.Repo + ":" + k.Folder
		}
	}
	return list, nil
}

// kernelNamed finds a kernel by its folder, by the last part of the folder, or by its value in a
// form. It returns nil if none or several match.
func kernelNamed(names []KernelName, text string) *KernelName {
	for _, same := range []func(KernelName) bool{
		func(k KernelName) bool { return k.Value == text || k.Repo+":"+k.Folder == text },
		func(k KernelName) bool { return k.Folder == text },
		func(k KernelName) bool { return strings.HasSuffix(k.Folder, "/"+text) },
	} {
		var found []KernelName
		for _, k := range names {
			if same(k) {
				found = append(found, k)
			}
		}
		if len(found) == 1 {
			return &found[0]
		}
	}
	return nil
}

// choices returns the runs that a picker offers: the default branch, the pull requests, then every
// attempt and commit.
func (s *Server) choices(ctx context.Context, names []KernelName, kernel *KernelName) ([]Choice, error) {
	if kernel == nil && len(names) == 1 {
		kernel = &names[0]
	}
	if kernel == nil {
		return nil, nil
	}
	main, err := s.Source.OnMain(ctx, kernel.repo, kernel.Folder, pickRuns)
	if err != nil {
		return nil, err
	}
	latest, err := s.Source.Latest(ctx, kernel.repo, kernel.Folder, pickRuns)
	if err != nil {
		return nil, err
	}
	var list []Choice
	if len(main) > 0 {
		list = append(list, Choice{"main", "the default branch: " + choiceWords(main[0])})
	}
	pulls := map[int]bool{}
	for _, r := range latest {
		if n := r.Change.Number; r.Change.Kind == change.Pull && r.Phase == change.Done && !r.Extra && !pulls[n] {
			pulls[n] = true
			list = append(list, Choice{"#" + strconv.Itoa(n), strings.TrimSpace(r.Title + " · " + choiceWords(r))})
		}
	}
	for _, r := range latest {
		if r.Phase != change.Done || r.Extra {
			continue
		}
		switch {
		case r.Change.Kind == change.Pull:
			list = append(list, Choice{r.Job, fmt.Sprintf("#%d, attempt %d at %s: %s", r.Change.Number, r.Attempt, report.Short(r.Head), choiceWords(r))})
		case r.Change.Kind == "":
			list = append(list, Choice{r.Job, choiceWords(r)})
		}
	}
	for _, r := range main {
		list = append(list, Choice{report.Short(r.Head), "commit of the default branch: " + choiceWords(r)})
	}
	return list, nil
}

func choiceWords(r ledger.RunRow) string {
	text := outcomeOf(r.Outcome, r.Reason).Word
	if r.Reason != "" {
		text += " " + string(r.Reason)
	}
	if r.Device != "" {
		text += ", " + deviceName(r.Device)
	}
	return text
}

var (
	// commitPattern matches a commit id, abbreviated as far as git does or less.
	commitPattern = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
	pullPattern   = regexp.MustCompile(`^#([0-9]{1,9})$`)
)

// picked returns the run that a text names: a run, the default branch, a pull request or a commit.
// For the last three it returns the last conclusive run, of the kernel if one is given.
func (s *Server) picked(ctx context.Context, v *visit, text string, kernel *KernelName) (ledger.RunRow, error) {
	text = strings.TrimSpace(text)
	if strings.EqualFold(text, "main") {
		if kernel == nil {
			return ledger.RunRow{}, errWhichKernel
		}
		rows, err := s.Source.OnMain(ctx, kernel.repo, kernel.Folder, 1)
		return firstOf(rows, err, kernel.Repo)
	}
	if m := pullPattern.FindStringSubmatch(text); m != nil {
		if kernel == nil {
			return ledger.RunRow{}, errWhichKernel
		}
		number, _ := strconv.Atoi(m[1]) // at most nine digits
		rows, err := s.Source.Attempts(ctx, change.ID{Kind: change.Pull, Repo: kernel.repo, Number: number})
		rows = slices.DeleteFunc(rows, func(r ledger.RunRow) bool {
			return r.Folder != kernel.Folder || r.Phase != change.Done || r.Extra
		})
		return firstOf(rows, err, kernel.Repo)
	}
	row, err := s.runOf(ctx, v, text)
	if commit := strings.ToLower(text); errors.Is(err, ErrNotFound) && commitPattern.MatchString(commit) {
		return s.ofCommit(ctx, v, commit, kernel)
	}
	return row, err
}

func firstOf(rows []ledger.RunRow, err error, repo string) (ledger.RunRow, error) {
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return ledger.RunRow{}, err
	}
	rows[0].Repo = repo
	return rows[0], nil
}

func (s *Server) ofCommit(ctx context.Context, v *visit, commit string, kernel *KernelName) (ledger.RunRow, error) {
	rows, err := s.Source.AtHead(ctx, commit, 200)
	if err != nil {
		return ledger.RunRow{}, err
	}
	repos, err := s.repos(ctx, v)
	if err != nil {
		return ledger.RunRow{}, err
	}
	var found *ledger.RunRow
	for _, r := range rows {
		name, mine := repos[r.Change.Repo]
		if !mine || r.Phase != change.Done || r.Extra {
			continue
		}
		r.Repo = name
		if kernel == nil || r.Folder == kernel.Folder && r.Change.Repo == kernel.repo {
			return r, nil
		}
		if found == nil {
			found = &r
		}
	}
	if found == nil {
		return ledger.RunRow{}, ErrNotFound
	}
	return *found, nil
}
