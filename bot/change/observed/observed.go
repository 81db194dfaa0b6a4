// Package observed reads the facts of a change out of what GitHub says of it, in an
// answer or in a webhook. It asks GitHub nothing, and leaves empty what was not
// said.
package observed

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/gates/why"
)

// OfPull are the facts in GitHub's answer about a pull request. The answer does not
// say which branch is the default, and names repositories by name alone: a head whose
// repository is gone counts as a fork's. It is told by the name that the repository has
// now, whatever it was asked for by.
func OfPull(repo, defaultBranch string, p client.Pull) change.Facts {
	repo = cmp.Or(p.BaseRepo, repo)
	return change.Facts{
		Repo: repo, DefaultBranch: defaultBranch, Title: p.Title, Claims: why.Claims(p.Title, p.Body), Author: p.Author, Labels: p.Labels, Draft: p.Draft, Open: p.Open, Merged: p.Merged,
		Fork: !strings.EqualFold(p.HeadRepo, repo), Head: p.HeadSHA, Base: p.BaseRef, Updated: p.UpdatedAt,
	}
}

// OfEvent are the facts in a webhook about a pull request, which knows repositories
// by number.
func OfEvent(e webhook.PullRequest) change.Facts {
	return change.Facts{
		Repo: e.Repository.FullName, DefaultBranch: e.Repository.DefaultBranch, Title: e.Title, Claims: why.Claims(e.Title, e.Body), Author: e.Author.Login, Labels: e.Labels,
		Draft: e.Draft, Open: e.Open, Merged: e.Merged, Fork: e.Fork(), Head: e.HeadSHA, Base: e.BaseRef, Updated: e.UpdatedAt,
	}
}

// OfRemark is what somebody wrote on a pull request, as a comment in its conversation, on
// a line or in a review, and where that stands.
func OfRemark(event webhook.Event) (said webhook.Remark, at change.Asked, ok bool) {
	id := ""
	switch e := event.(type) {
	case webhook.IssueComment:
		said, id = e.Remark, "comment-"
	case webhook.ReviewComment:
		said, id, at.On = e.Remark, "line-", change.OnLine
	case webhook.Review:
		if e.State == "dismissed" {
			return said, at, false // what it said was said before
		}
		said, id, at.On, at.Head = e.Remark, "review-", change.InReview, e.HeadSHA
	default:
		return said, at, false
	}
	at.ID, at.Comment, at.By = id+strconv.FormatInt(said.ID, 10), said.ID, said.Author.Login
	return said, at, true
}

// queuePattern ends the branch that a merge queue makes for a group. What stands before
// is the base branch, which may be called anything.
var queuePattern = regexp.MustCompile(`/pr-([0-9]{1,9})-[^/]*$`)

// Member is a pull request of a merge group.
func Member(number int, f change.Facts) change.Member {
	return change.Member{Number: number, Head: f.Head, Title: f.Title, Labels: f.Labels, Draft: f.Draft}
}

// Entries is the entries of a merge queue that a merge group consists of: the one with the head of the group, and
// those ahead of it, back to the commit that the group was made on. It is nil where they do not lead there.
func Entries(queue []client.QueueEntry, f change.Facts) []client.QueueEntry {
	var of []client.QueueEntry
	for at := f.Head; at != f.BaseSHA; {
		i := slices.IndexFunc(queue, func(e client.QueueEntry) bool { return e.Head == at && e.Head != e.Base })
		if i < 0 || len(of) == len(queue) {
			return nil
		}
		of, at = append(of, queue[i]), queue[i].Base
	}
	return of
}

// OfGroup are the facts in a webhook about a merge group. Pulls has the number in the
// queue's branch, of the pull request that the group ends with. Its Members choose the
// rule, and are the caller's to find.
func OfGroup(e webhook.MergeGroup) change.Facts {
	f := change.Facts{
		Repo: e.Repository.FullName, DefaultBranch: e.Repository.DefaultBranch, Open: e.Action == "checks_requested",
		Head: e.HeadSHA, Base: strings.TrimPrefix(e.BaseRef, "refs/heads/"), BaseSHA: e.BaseSHA,
	}
	if m := queuePattern.FindStringSubmatch(e.HeadRef); m != nil {
		n, _ := strconv.Atoi(m[1]) // nine digits always are a number
		f.Pulls = []int{n}
	}
	return f
}

// OfQueueBranch are the facts that the name of a merge queue's branch tells about its group, which ends with this head. ok is
// false where it is no such name.
func OfQueueBranch(repo, ref, head string) (f change.Facts, ok bool) {
	m := queueBranchPattern.FindStringSubmatch(ref)
	if m == nil {
		return f, false
	}
	n, _ := strconv.Atoi(m[2]) // nine digits always are a number
	return change.Facts{Repo: repo, Open: true, Head: head, Base: m[1], BaseSHA: m[3], Pulls: []int{n}}, true
}

var queueBranchPattern = regexp.MustCompile(`^refs/heads/gh-readonly-queue/(.+)/pr-([0-9]{1,9})-([0-9a-f]{40}|[0-9a-f]{64})$`)
