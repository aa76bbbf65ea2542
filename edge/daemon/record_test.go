package daemon

import (
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/edge/config"
)

// A record's header shows no key and no password, and the configuration stays as it is.
func TestRecordedConfigHasNoSecrets(t *testing.T) {
	c := &config.Config{Extenders: []configv1.Extender{{
		URLPrefix: "https://user:passw0rd@extender", TLSConfig: &configv1.ExtenderTLSConfig{KeyData: []byte("secret")},
	}}}
	c.ClientConnection.Kubeconfig = "/home/me/kubeconfig"
	text, err := recordedConfig(c)
	if err != nil || !strings.Contains(text, "@extender") {
		t.Errorf("%s, %v", text, err)
	}
	for _, secret := range []string{"passw0rd", "c2VjcmV0", "/home/me"} { // base64 of "secret"
		if strings.Contains(text, secret) {
			t.Errorf("%q in %s", secret, text)
		}
	}
	if x := &c.Extenders[0]; !strings.Contains(x.URLPrefix, "passw0rd") || x.TLSConfig == nil || c.ClientConnection.Kubeconfig == "" {
		t.Error("the configuration itself was changed")
	}
}
