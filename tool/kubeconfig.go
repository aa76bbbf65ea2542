package tool

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/edge/untrusted"
)

var errNoKubeconfig = errors.New("no kubeconfig: set KUBECONFIG, or give --kubeconfig FILE")

// connection is the way to a cluster: kubectl's flags, with kubectl's meaning.
type connection struct {
	flags *genericclioptions.ConfigFlags
}

// newConnection returns the connection of kubectl without flags. Its certificate is
// always verified, and it keeps no cache.
func newConnection() connection {
	flags := genericclioptions.NewConfigFlags(false)
	flags.Insecure, flags.CacheDir, flags.DisableCompression, flags.Namespace = nil, nil, nil, nil
	return connection{flags}
}

// addFlags adds the flags. usage is that of --kubeconfig.
func (c connection) addFlags(f *pflag.FlagSet, usage string) {
	c.flags.AddFlags(f)
	f.Lookup("kubeconfig").Usage = usage
	f.Lookup("request-timeout").Usage = "how long the server may take for one answer, such as 30s; 0 means the usual bound, about a minute"
}

// addNamespace adds -n, and -A, which is the default and a habit. The usage says what is of
// this namespace.
func (c connection) addNamespace(cmd *cobra.Command, usage string) {
	c.flags.Namespace = new(string)
	cmd.Flags().StringVarP(c.flags.Namespace, "namespace", "n", "", usage)
	cmd.Flags().BoolP("all-namespaces", "A", false, "pods of all namespaces, as without -n")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

// connectionFlags returns the names of the flags.
func connectionFlags() []string {
	var names []string
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	newConnection().flags.AddFlags(f)
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// namesCluster reports whether a flag says which cluster it is.
func (c connection) namesCluster() bool {
	return c.file() != "" || *c.flags.Context != "" || *c.flags.ClusterName != "" || *c.flags.APIServer != ""
}

// file returns the file of --kubeconfig.
func (c connection) file() string { return *c.flags.KubeConfig }

// given returns the namespace of -n.
func (c connection) given() string {
	if c.flags.Namespace == nil {
		return ""
	}
	return *c.flags.Namespace
}

// config reads the kubeconfig as kubectl does. Credentials are for its server alone.
// Errors name the file.
func (c connection) config() (*rest.Config, error) {
	if err := c.checkTimeout(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := c.flags.ToRESTConfig()
	if err == nil && c.isNowhere(config) {
		err = clientcmd.ErrEmptyConfig
	}
	if err != nil {
		return nil, c.explain(err)
	}
	config.WarningHandler = rest.NoWarnings{} // of deprecated versions, which the caller did not choose
	config.Wrap(untrusted.NoRedirects)
	return config, nil
}

// checkTimeout checks --request-timeout.
func (c connection) checkTimeout() error {
	if d, err := clientcmd.ParseTimeout(*c.flags.Timeout); err != nil || d < 0 {
		return fmt.Errorf("--request-timeout %s: must be a time, such as 30s or 2m", *c.flags.Timeout)
	}
	return nil
}

// check checks the files that the client would read.
func (c connection) check() error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = c.file(), false
	o := &clientcmd.ConfigOverrides{CurrentContext: *c.flags.Context}
	o.Context.Cluster, o.Context.AuthInfo = *c.flags.ClusterName, *c.flags.AuthInfoName
	o.ClusterInfo.CertificateAuthority = *c.flags.CAFile
	o.AuthInfo.ClientCertificate, o.AuthInfo.ClientKey = *c.flags.CertFile, *c.flags.KeyFile
	return untrusted.Kubeconfig(rules, o)
}

// isNowhere reports whether neither a kubeconfig nor a flag names a cluster. kubectl
// takes http://localhost:8080 then.
func (c connection) isNowhere(config *rest.Config) bool {
	usual, err := clientcmd.DefaultClientConfig.ClientConfig()
	if err != nil || config.Host != usual.Host || *c.flags.APIServer != "" || *c.flags.ClusterName != "" {
		return false
	}
	raw, err := c.flags.ToRawKubeConfigLoader().RawConfig()
	return err != nil || raw.Contexts[cmp.Or(*c.flags.Context, raw.CurrentContext)] == nil
}

// explain says of which file an error is, and what is wrong where there is none.
func (c connection) explain(err error) error {
	name, files := "--kubeconfig "+c.file(), []string{c.file()}
	if c.file() == "" {
		files = clientcmd.NewDefaultClientConfigLoadingRules().Precedence
		name = strings.Join(files, string(os.PathListSeparator))
		if set := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); set != "" {
			name = clientcmd.RecommendedConfigPathEnvVar + " " + set
		} else if !exists(files) {
			return errNoKubeconfig
		}
	}
	switch {
	case !exists(files):
		return fmt.Errorf("%s: there is no such file", name)
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("%s: names no cluster: it is empty, or has no current-context", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// namespace returns the namespace of -n, or that of the context. An error is left to who
// reads the kubeconfig next.
func (c connection) namespace() string {
	if c.check() != nil {
		return ""
	}
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// exists reports whether any of the files is there.
func exists(files []string) bool {
	for _, f := range files {
		if _, err := os.Stat(f); !os.IsNotExist(err) {
			return true
		}
	}
	return false
}
