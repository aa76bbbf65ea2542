package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/edge/untrusted"
)

var errNoKubeconfig = errors.New("no kubeconfig: set KUBECONFIG, or give --kubeconfig FILE")

// loadKubeconfig reads a kubeconfig as kubectl does: without a file KUBECONFIG counts,
// and without a context the current one. Credentials are for its server alone. Errors name
// the file.
func loadKubeconfig(file, context string) (*rest.Config, error) {
	if err := untrusted.Kubeconfig(kubeconfigRules(file), context); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := kubeconfig(file, context).ClientConfig()
	if err == nil {
		config.WarningHandler = rest.NoWarnings{} // of deprecated versions, which the caller did not choose
		config.Wrap(untrusted.NoRedirects)
		return config, nil
	}
	name, files := "--kubeconfig "+file, []string{file}
	if file == "" {
		files = clientcmd.NewDefaultClientConfigLoadingRules().Precedence
		name = strings.Join(files, string(os.PathListSeparator))
		if set := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); set != "" {
			name = clientcmd.RecommendedConfigPathEnvVar + " " + set
		} else if !exists(files) {
			return nil, errNoKubeconfig
		}
	}
	switch {
	case !exists(files):
		return nil, fmt.Errorf("%s: there is no such file", name)
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("%s: names no cluster: it is empty, or has no current-context", name)
	}
	return nil, fmt.Errorf("%s: %w", name, err)
}

func kubeconfigRules(file string) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = file, false
	return rules
}

func kubeconfig(file, context string) clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(kubeconfigRules(file), &clientcmd.ConfigOverrides{CurrentContext: context})
}

// namespaceOf is the namespace of the context of a kubeconfig. An error is left to who
// reads the kubeconfig next.
func namespaceOf(file, context string) string {
	if untrusted.Kubeconfig(kubeconfigRules(file), context) != nil {
		return ""
	}
	namespace, _, err := kubeconfig(file, context).Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// exists tells whether any of the files is there.
func exists(files []string) bool {
	for _, f := range files {
		if _, err := os.Stat(f); !os.IsNotExist(err) {
			return true
		}
	}
	return false
}
