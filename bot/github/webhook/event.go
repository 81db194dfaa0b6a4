package webhook

import (
	"strings"
	"time"
)

// An Event is one of PullRequest, IssueComment, Review, ReviewComment, MergeGroup,
// CheckRun, CheckSuite, Push, RepositoryChange, Installation,
// InstallationRepositories, InstallationTarget, Ping and Ignored.
type Event interface{ isEvent() }

// Origin is where an event came from. Whatever has one is an Event.
type Origin struct {
	Repository   Repository
	Installation int64 // the App's; 0 for a repository's own hook
	Sender       User  // empty where GitHub names none
}

func (Origin) isEvent() {}

// A Repository is one on GitHub. The list of an Installation has no
// DefaultBranch.
type Repository struct {
	ID            int64
	FullName      string // owner/name
	DefaultBranch string
}

// Owner is the account in FullName.
func (r Repository) Owner() string {
	owner, _, _ := strings.Cut(r.FullName, "/")
	return owner
}

// Name is FullName without the account.
func (r Repository) Name() string {
	_, name, _ := strings.Cut(r.FullName, "/")
	return name
}

// A User is an account. A deleted one has no name.
type User struct {
	Login string
	Bot   bool
}

// A PullRequest was opened, synchronize(d), reopened, ready_for_review,
// converted_to_draft, labeled, unlabeled, edited or closed. The state is the one
// after that.
type PullRequest struct {
	Origin
	Number    int
	Title     string
	Body      string
	Author    User
	Draft     bool
	Open      bool
	Merged    bool
	Labels    []string
	HeadSHA   string
	HeadRepo  Repository // zero if the fork is gone
	BaseRef   string
	UpdatedAt time.Time
}

// Fork tells whether the head is not in the repository itself. A head whose
// repository is gone counts as one.
func (p PullRequest) Fork() bool { return p.HeadRepo.ID != p.Repository.ID }

// A Remark is what somebody wrote on a pull request.
type Remark struct {
	Origin
	Number int // of the pull request
	Open   bool
	ID     int64
	Body   string // of a review often empty
	Author User
}

// An IssueComment was written in the conversation of a pull request.
type IssueComment struct{ Remark }

// A ReviewComment was written on a line of a pull request. Its ID is of another
// kind than an IssueComment's: the two may have the same number, and reactions go
// to another address.
type ReviewComment struct{ Remark }

// A Review of a pull request was submitted, or somebody has dismissed it. Its ID is of a kind of its own, and
// nobody can react to it.
type Review struct {
	Remark
	State   string // approved, changes_requested, commented or dismissed
	HeadSHA string // the commit that the reviewer saw
}

// A MergeGroup asks for checks (checks_requested) or is gone (destroyed).
type MergeGroup struct {
	Origin
	Action  string
	HeadSHA string
	HeadRef string // such as refs/heads/gh-readonly-queue/main/pr-104-…
	BaseSHA string
	BaseRef string // such as refs/heads/main
}

// A CheckRun was asked for again (rerequested), or one of its buttons was
// pressed (requested_action).
type CheckRun struct {
	Origin
	Action       string
	AppID        int64
	ExternalID   string
	HeadSHA      string
	PullRequests []int // empty for forks: find those by HeadSHA
	Button       string
}

// A CheckSuite was asked for again.
type CheckSuite struct {
	Origin
	AppID        int64
	HeadSHA      string
	PullRequests []int // empty for forks: find those by HeadSHA
}

// A Push moved, made or deleted a branch. Where there was no commit, or is none any more, its
// id has zeros only.
type Push struct {
	Origin
	Branch string
	Before string
	After  string
}

// Made tells whether there was no branch before.
func (p Push) Made() bool { return strings.Trim(p.Before, "0") == "" }

// Deleted tells whether there is no branch any more.
func (p Push) Deleted() bool { return strings.Trim(p.After, "0") == "" }

// Default tells whether the repository's main branch was pushed to.
func (p Push) Default() bool { return p.Branch == p.Repository.DefaultBranch }

// An Installation of the App was created, deleted, suspend(ed), unsuspend(ed)
// or got new_permissions_accepted. Its Origin has no repository.
type Installation struct {
	Origin
	Action       string
	Account      User
	Repositories []Repository
}

// An InstallationTarget is an account with the App in it that got another name:
// all its repositories have other full names now.
type InstallationTarget struct {
	Origin
	Account  User
	LoginWas string
}

// A RepositoryChange says that a repository was renamed, transferred, archived,
// unarchived or deleted. The Repository is the one after that.
type RepositoryChange struct {
	Origin
	Action      string
	FullNameWas string // renamed, transferred: owner/name before
}

// InstallationRepositories were added to an installation or removed.
type InstallationRepositories struct {
	Origin
	Added   []Repository
	Removed []Repository
}

// A Ping says that a hook was made.
type Ping struct {
	Origin
	HookID int64
}

// Ignored is a delivery that changes nothing for kernelgate.
type Ignored struct{ Reason string }

func (Ignored) isEvent() {}
