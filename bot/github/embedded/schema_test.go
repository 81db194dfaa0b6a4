package embedded_test

import (
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/embedded/openapi"
)

// checkWebhooks compares all webhooks that the App received with GitHub's schemas, if the cache has
// them. Each test ends with it.
func (w *world) checkWebhooks() {
	s, err := openapi.ReadSchemas()
	if err != nil {
		return // TestWebhooksAreValid reports this
	}
	said := map[string]bool{}
	for _, d := range w.app.Hook().Deliveries() {
		wrong, known := s.Check(d.Event, d.Payload)
		if !known {
			w.Errorf("GitHub sends no %s.%s", d.Event, d.Action)
		}
		for _, line := range wrong {
			if line = d.Event + "." + d.Action + line; !said[line] {
				said[line] = true
				w.Error(line)
			}
		}
	}
}

// TestWebhooksAreValid makes the hub send every kind of webhook that it can send.
func TestWebhooksAreValid(t *testing.T) {
	t.Parallel()
	openapi.LoadSchemas(t)
	w, first, second := queued(t)
	w.no(w.repo.Grant("bob", embedded.Write))
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "third", Author: "bob", Files: map[string]string{"c.cu": "c\n"}, Message: "third"})
	w.no(err)
	pr := w.open(embedded.PROptions{Author: "bob", Title: "Third", Body: "words", Head: "third", Draft: true, Labels: []string{"perf"}})
	w.no(pr.Ready("bob"))
	w.no(pr.ConvertToDraft("bob"))
	w.no(pr.Ready("bob"))
	w.no(pr.Unlabel("bob", "perf"))
	c, err := pr.Comment("bob", "/rebench")
	w.no(err)
	w.no(c.Edit("bob", "/explain"))
	w.no(pr.Review("alice", "APPROVE", ""))
	w.no(pr.Review("alice", "REQUEST_CHANGES", "/rebench"))
	w.no(pr.Dismiss("bob", "alice"))
	_, err = pr.CommentOn("alice", "c.cu", 1, "/rebench")
	w.no(err)
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success")
	check, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
	w.no(check.Rerequest("bob"))
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "failure")
	w.no(check.RerequestSuite("bob"))
	w.no(pr.Edit("bob", "Still the third", "more words", ""))
	w.no(pr.Lock("alice", "too heated"))
	w.no(pr.Unlock("alice"))
	w.no(pr.Close("bob"))
	w.no(pr.Reopen("bob"))
	_, _, err = w.person("alice").Repositories.CreateStatus(w.ctx, "alice", "kernels", pr.HeadSHA(), &github.RepoStatus{State: github.String("success"), Context: github.String("c")})
	w.no(err)
	w.check(w.bot(), w.repo.QueueHeads()[0], "kernelgate", "success")
	w.check(w.bot(), w.repo.QueueHeads()[0], "kernelgate", "failure")
	if !first.State().Merged || second.State().Merged {
		t.Error("the queue did not move")
	}
	w.repo.Archive()
	w.repo.Unarchive()
	w.no(w.repo.Rename("cuda"))
	w.no(w.hub.RenameAccount("alice", "alicia"))
	other, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "acme", Name: "others"})
	w.no(err)
	theirs, err := w.app.Install(other)
	w.no(err)
	w.no(w.repo.Transfer("acme"))
	theirs.Suspend()
	theirs.Unsuspend()
	w.repo.Delete()
	theirs.Uninstall()
	w.quiet()
	sent := map[string]bool{}
	for _, d := range w.app.Hook().Deliveries() {
		sent[d.Event+"."+d.Action] = true
	}
	for _, want := range []string{"pull_request.opened", "pull_request.locked", "pull_request.closed", "pull_request_review.submitted", "pull_request_review_comment.created",
		"check_run.rerequested", "check_suite.rerequested", "merge_group.destroyed", "repository.archived", "repository.unarchived", "repository.renamed",
		"repository.transferred", "repository.deleted", "installation.suspend", "installation.unsuspend", "installation.deleted",
		"installation_repositories.removed", "installation_repositories.added", "installation_target.renamed", "push.", "ping."} {
		if !sent[want] {
			t.Errorf("no %s was sent", want)
		}
	}
}
