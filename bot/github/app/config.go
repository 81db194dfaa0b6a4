package app

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"gopkg.in/yaml.v3"
)

// The names of the files, in the order in which they are created: the configuration never exists
// without the files that it names.
const (
	keyFile    = "private-key.pem"
	secretFile = "webhook-secret"
	configFile = "kernelgate.yaml"
)

// A config holds the settings of the bot that differ from the defaults.
type config struct {
	Listen string `yaml:"listen"`
	URL    string `yaml:"url"`
	GitHub struct {
		AppID             int64  `yaml:"app_id"`
		PrivateKeyFile    string `yaml:"private_key_file"`
		WebhookSecretFile string `yaml:"webhook_secret_file"`
		APIURL            string `yaml:"api_url,omitempty"`
	} `yaml:"github"`
	Runner struct {
		Local bool `yaml:"local"`
	} `yaml:"runner"`
}

// config writes the configuration for the App. It contains neither of the two secrets, so anybody
// may read it.
func (j *job) config(made app) ([]byte, error) {
	c := config{Listen: "127.0.0.1:8080", URL: j.site}
	c.GitHub.AppID = made.ID
	c.GitHub.PrivateKeyFile = filepath.Join(j.dir, keyFile)
	c.GitHub.WebhookSecretFile = filepath.Join(j.dir, secretFile)
	if j.web.Host != "github.com" {
		api := *j.api
		api.Path = api.Path[:len(api.Path)-1]
		c.GitHub.APIURL = api.String()
	}
	c.Runner.Local = true
	var text bytes.Buffer
	fmt.Fprintf(&text, "# The bot of %s\n# kernelgate serve --help lists every key. A reverse proxy in front of listen does TLS.\n\n", made.HTMLURL)
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(c), e.Close()); err != nil {
		return nil, fmt.Errorf("writing the configuration of App %d: %w", made.ID, err)
	}
	return text.Bytes(), nil
}

func (j *job) files(made app) ([]file, error) {
	text, err := j.config(made)
	if err != nil {
		return nil, err
	}
	return []file{
		{keyFile, []byte(made.PEM), 0o600},
		{secretFile, []byte(made.WebhookSecret + "\n"), 0o600},
		{configFile, text, 0o644},
	}, nil
}
