package embedded

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A manifest holds the fields of an App manifest that GitHub reads.
type manifest struct {
	Name        string
	URL         string
	Description string
	RedirectURL string `json:"redirect_url"`
	Hook        *struct {
		URL    string
		Active *bool
	} `json:"hook_attributes"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

// maxAppName is GitHub's limit, in characters.
const maxAppName = 34

// appPermissions are the permissions that an App can request, with the names from GitHub's API
// description.
var appPermissions = strings.Fields(`actions administration artifact_metadata attestations checks code_quality codespaces contents
	custom_properties_for_organizations dependabot_secrets deployments discussions email_addresses
	enterprise_custom_properties_for_organizations environments followers git_ssh_keys gpg_keys interaction_limits issues members
	merge_queues metadata organization_administration organization_announcement_banners organization_copilot_agent_settings
	organization_copilot_seat_management organization_custom_org_roles organization_custom_properties organization_custom_roles
	organization_events organization_hooks organization_packages organization_personal_access_token_requests
	organization_personal_access_tokens organization_plan organization_projects organization_secrets
	organization_self_hosted_runners organization_user_blocking packages pages profile pull_requests repository_custom_properties
	repository_hooks repository_projects secret_scanning_alerts secrets security_events single_file starring statuses
	vulnerability_alerts workflows`)

// subscriptions maps each permission to the events that it lets an App subscribe to. Events that
// GitHub sends to every App without a subscription, such as installation, are not listed.
var subscriptions = map[string]string{
	"actions":       "workflow_dispatch workflow_job workflow_run",
	"checks":        "check_run check_suite",
	"contents":      "commit_comment create delete fork gollum push release repository_dispatch",
	"deployments":   "deployment deployment_status",
	"discussions":   "discussion discussion_comment",
	"issues":        "issue_comment issues milestone",
	"members":       "member membership organization team",
	"merge_queues":  "merge_group",
	"metadata":      "label public repository star watch",
	"pages":         "page_build",
	"pull_requests": "pull_request pull_request_review pull_request_review_comment pull_request_review_thread",
	"statuses":      "status",
}

// permissionFor returns the permission that an event needs, or an empty string if the event does
// not exist.
func permissionFor(event string) string {
	for permission, events := range subscriptions {
		if slices.Contains(strings.Fields(events), event) {
			return permission
		}
	}
	return ""
}

// readManifest parses a manifest and returns all errors that GitHub would find. There is one
// exception: GitHub refuses a webhook on the loopback address, but the hub and its clients run
// there.
func readManifest(text string) (manifest, []string) {
	var m manifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, []string{"The manifest is no JSON: " + err.Error()}
	}
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	switch n := utf8.RuneCountInString(m.Name); {
	case slugOf(m.Name) == "":
		add("Name can't be blank")
	case n > maxAppName:
		add("Name is too long (maximum is %d characters)", maxAppName)
	}
	address := func(field, text string) {
		switch {
		case text == "":
			add("%q wasn't supplied.", field)
		case !webAddress(text):
			add("%q must be a valid URL", field)
		}
	}
	address("url", m.URL)
	address("redirect_url", m.RedirectURL)
	if m.Hook != nil { // GitHub's message does not say which url is wrong
		address("url", m.Hook.URL)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Permissions)) {
		switch level := m.Permissions[name]; {
		case !slices.Contains(appPermissions, name):
			add("Default permission records resource is not included in the list")
		case !slices.Contains([]string{"read", "write", "admin"}, level):
			add("Default permission records action is not included in the list")
		}
	}
	var unknown, unbacked []string
	for _, event := range m.Events {
		perm := permissionFor(event)
		if perm == "" {
			unknown = append(unknown, event)
		}
		// Every App has the metadata permission.
		if perm != "metadata" && m.Permissions[perm] == "" {
			unbacked = append(unbacked, event)
		}
	}
	if len(unknown) > 0 {
		add("Default events unsupported: %s", strings.Join(unknown, ", "))
	}
	if len(unbacked) > 0 {
		add("Default events are not supported by permissions: %s", strings.Join(unbacked, ", "))
	}
	return m, wrong
}

func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slugOf returns the form of an App's name that URLs use.
func slugOf(name string) string {
	return strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

// An offer is an App that a user confirmed and that no client has fetched yet.
type offer struct {
	opt  AppOptions
	ends time.Time
}

// offerLife is the lifetime of GitHub's code.
const offerLife = time.Hour

var newAppPage = regexp.MustCompile(`^(?:/organizations/([^/]+))?/settings/apps/new$`)

// serveNewApp serves the page that receives a posted manifest. GitHub asks a logged-in user to
// confirm the name. The hub has no logins and confirms at once.
func (s *Server) serveNewApp(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Post a manifest here.", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	m, wrong := readManifest(r.PostFormValue("manifest"))
	opt := AppOptions{Slug: slugOf(m.Name), Name: m.Name, Owner: newAppPage.FindStringSubmatch(r.URL.Path)[1], Description: m.Description,
		Site: m.URL, Permissions: m.Permissions, Events: m.Events}
	if len(wrong) == 0 { // outside the lock, because it is slow
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		opt.Key = key
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if owner := s.users[opt.Owner]; opt.Owner != "" && (owner == nil || owner.kind != "Organization") {
		http.NotFound(w, r)
		return
	}
	if s.appNamed(opt.Slug) != nil {
		wrong = append(wrong, "Name is already taken")
	}
	if len(wrong) > 0 {
		text := "Invalid GitHub App configuration\nThe configuration does not appear to be a valid GitHub App manifest.\n"
		http.Error(w, text+"Error "+strings.Join(wrong, "\nError "), http.StatusUnprocessableEntity)
		return
	}
	if m.Hook != nil && (m.Hook.Active == nil || *m.Hook.Active) {
		opt.HookURL, opt.HookSecret = m.Hook.URL, s.secret("")
	}
	code := s.secret("")
	s.offers[code] = &offer{opt: opt, ends: s.opt.Clock().Add(offerLife)}
	back, _ := url.Parse(m.RedirectURL) // readManifest has checked that it parses
	q := back.Query()
	q.Set("code", code)
	if state := r.URL.Query().Get("state"); state != "" {
		q.Set("state", state)
	}
	back.RawQuery = q.Encode()
	w.Header().Set("Location", back.String())
	w.WriteHeader(http.StatusFound)
}

// postConversion creates the App for a code and shows its secrets, this one time only. It needs no
// authentication: the code is the credential.
func postConversion(rq *request) error {
	s, code := rq.s, rq.PathValue("code")
	o := s.offers[code]
	if o == nil || !s.opt.Clock().Before(o.ends) {
		return errNotFound()
	}
	if s.appNamed(o.opt.Slug) != nil {
		return &apiError{Status: http.StatusUnprocessableEntity, Message: "Name is already taken"}
	}
	delete(s.offers, code)
	a := s.register(o.opt)
	s.touch()
	return rq.reply(http.StatusCreated, with(a.render(), map[string]any{"permissions": o.opt.Permissions, "client_id": "Iv1." + nodeID("App", a.id),
		"client_secret": s.secret(""), "webhook_secret": orNil(o.opt.HookSecret), "pem": string(a.PrivateKeyPEM())}))
}
