package untrusted

import (
	"cmp"
	"errors"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig checks the files that a client would read by the rules and the overrides: the
// kubeconfigs, and the certificates, the key and the token of the cluster and the user. It
// returns why one of them may not be read. Files that do not exist, and kubeconfigs that
// cannot be decoded, are left for the client to report.
func Kubeconfig(rules *clientcmd.ClientConfigLoadingRules, o *clientcmd.ConfigOverrides) error {
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
	of := o.Context
	if context := c.Contexts[cmp.Or(o.CurrentContext, c.CurrentContext)]; context != nil {
		of.Cluster, of.AuthInfo = cmp.Or(of.Cluster, context.Cluster), cmp.Or(of.AuthInfo, context.AuthInfo)
	}
	files := []string{o.ClusterInfo.CertificateAuthority, o.AuthInfo.ClientCertificate, o.AuthInfo.ClientKey}
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
