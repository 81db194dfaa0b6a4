package webhook

import "time"

// The wire types are GitHub's JSON, cut down to what Event needs. None embeds
// another: the names in encoding/json's errors are then GitHub's own.

type wireRepository struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"`
	DefaultBranch string `json:"default_branch"`
}

type wireUser struct {
	Login string `json:"login"`
	Type  string `json:"type"`
}

type wireInstallation struct {
	ID      int64    `json:"id"`
	Account wireUser `json:"account"`
}

type wirePullRequest struct {
	Number    int         `json:"number"`
	Title     string      `json:"title"`
	Body      string      `json:"body"`
	State     string      `json:"state"`
	Draft     bool        `json:"draft"`
	Merged    bool        `json:"merged"`
	User      wireUser    `json:"user"`
	Labels    []wireLabel `json:"labels"`
	Head      wireBranch  `json:"head"`
	Base      wireBranch  `json:"base"`
	UpdatedAt time.Time   `json:"updated_at"`
}

type wireLabel struct {
	Name string `json:"name"`
}

type wireBranch struct {
	SHA  string          `json:"sha"`
	Ref  string          `json:"ref"`
	Repo *wireRepository `json:"repo"`
}

type wireChanges struct {
	Title wireChange `json:"title"`
	Base  struct {
		Ref wireChange `json:"ref"`
	} `json:"base"`
	Login      wireChange `json:"login"`
	Repository struct {
		Name wireChange `json:"name"`
	} `json:"repository"`
	Owner struct {
		From struct {
			User         wireUser `json:"user"`
			Organization wireUser `json:"organization"`
		} `json:"from"`
	} `json:"owner"`
}

type wireChange struct {
	From string `json:"from"`
}

// A wireIssue is one, or a pull request.
type wireIssue struct {
	Number      int       `json:"number"`
	State       string    `json:"state"`
	PullRequest *struct{} `json:"pull_request"`
}

// A wireComment is a comment of either kind, or a review.
type wireComment struct {
	ID       int64    `json:"id"`
	Body     string   `json:"body"`
	User     wireUser `json:"user"`
	State    string   `json:"state"`
	CommitID string   `json:"commit_id"`
}

type wireMergeGroup struct {
	HeadSHA string `json:"head_sha"`
	HeadRef string `json:"head_ref"`
	BaseSHA string `json:"base_sha"`
	BaseRef string `json:"base_ref"`
}

// A wireCheck is a check run or a check suite.
type wireCheck struct {
	ExternalID   string   `json:"external_id"`
	HeadSHA      string   `json:"head_sha"`
	App          wireThis `json:"app"`
	PullRequests []struct {
		Number int `json:"number"`
		Base   struct {
			Repo wireThis `json:"repo"`
		} `json:"base"`
	} `json:"pull_requests"`
}

type wireThis struct {
	ID int64 `json:"id"`
}

type wireButton struct {
	Identifier string `json:"identifier"`
}
