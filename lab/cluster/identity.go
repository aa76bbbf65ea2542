package cluster

import (
	"fmt"
	"net"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Admin is the identity that may do everything. The other identities are the
// components that are clients of kube-apiserver.
const Admin = "admin"

// identities names the users that the lab's clients are. Only the administrator
// is in a group with rights of its own; the others have what RBAC grants the
// user name: Kubernetes' bootstrap policy to its components, deploy/rbac.yaml to
// Berth, kwok.yaml to kwok.
var identities = []struct {
	name, user string
	groups     []string
}{
	{Admin, "berth-lab-admin", []string{"system:masters"}},
	{ControllerManager, "system:kube-controller-manager", nil},
	{KubeScheduler, "system:kube-scheduler", nil},
	{Berth, "system:berth-scheduler", nil},
	{KWOK, "kwok-controller", nil},
}

// frontProxy is the authority of proxies that say whom they speak for.
const frontProxy = "front-proxy-ca"

// serviceAddress is what the Service "kubernetes" gets in the lab's range.
var serviceAddress = net.IPv4(10, 96, 0, 1)

// writeCredentials puts all that the children need to trust each other into the
// lab's directory: pki/ and one kubeconfig an identity. It returns the
// authority's certificate, PEM encoded.
func (c *Cluster) writeCredentials() error {
	pki := filepath.Join(c.dir, "pki")
	ca, err := openAuthority(pki, "ca")
	if err != nil {
		return err
	}
	// Nobody is a front proxy. Without its authority each scheduler logs an error about it
	// over and over.
	if _, err := openAuthority(pki, frontProxy); err != nil {
		return err
	}
	if _, err := openKey(filepath.Join(pki, "service-account.key")); err != nil {
		return err
	}
	serving, err := ca.server(APIServer, []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}, serviceAddress)
	if err != nil {
		return err
	}
	if err := serving.write(pki, APIServer); err != nil {
		return err
	}
	for _, identity := range identities {
		pair, err := ca.client(identity.user, identity.groups...)
		if err != nil {
			return err
		}
		path := c.Kubeconfig(identity.name)
		if err := clientcmd.WriteToFile(kubeconfig(identity.name, c.server(), ca.pem(), pair), path); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

// Kubeconfig is the path of the kubeconfig of an identity: Admin or a
// component's name.
func (c *Cluster) Kubeconfig(identity string) string {
	return filepath.Join(c.dir, identity+".kubeconfig")
}

func kubeconfig(user, server string, ca []byte, pair keyPair) clientcmdapi.Config {
	const name = "berth-lab"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.certificate, ClientKeyData: pair.key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	return *config
}
