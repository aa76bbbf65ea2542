package untrusted

import (
	"cmp"
	"errors"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig checks the files that a client would read by the rules: the kubeconfigs, and the
// certificates, the key and the token that the context names ("" means the current context).
// It returns why one of them may not be read. Files that do not exist, and kubeconfigs that
// cannot be decoded, are left for the client to report.
func Kubeconfig(rules *clientcmd.ClientConfigLoadingRules, context string) error {
	for _, path := range rules.GetLoadingPrecedence() {
		if path == "" {
			continue
		}
		if _, err := YAML(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	c, err := rules.Load()
	if err != nil {
		return nil // the client says so
	}
	of := c.Contexts[cmp.Or(context, c.CurrentContext)]
	if of == nil {
		return nil
	}
	var files []string
	if cluster := c.Clusters[of.Cluster]; cluster != nil {
		files = append(files, cluster.CertificateAuthority)
	}
	if user := c.AuthInfos[of.AuthInfo]; user != nil {
		files = append(files, user.ClientCertificate, user.ClientKey, user.TokenFile)
	}
	for _, path := range files {
		if err := Check(path, Certificate); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
