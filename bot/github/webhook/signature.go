package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

const signaturePrefix = "sha256="

var signatureText = regexp.MustCompile(`^sha256=[0-9a-fA-F]{64}$`)

// Sign is the X-Hub-Signature-256 that GitHub would send with a body.
func Sign(secret, body []byte) string {
	return signaturePrefix + hex.EncodeToString(digest(secret, body))
}

func digest(secret, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return mac.Sum(nil)
}

// signedBy compares in constant time, and with every secret whether or not one
// fits: how long it takes tells nothing. Anybody can sign with the empty secret,
// so that proves nothing.
func signedBy(secrets [][]byte, body []byte, signature string) bool {
	got, err := hex.DecodeString(strings.TrimPrefix(signature, signaturePrefix))
	if err != nil {
		return false
	}
	signed := false
	for _, secret := range secrets {
		if len(secret) > 0 && hmac.Equal(got, digest(secret, body)) {
			signed = true
		}
	}
	return signed
}
