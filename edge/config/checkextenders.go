package config

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// checkExtenders tells which extenders no call would reach, and which no scheduler starts
// with. The files that the configuration names are those of the machine that the scheduler
// runs on, so they are not read.
func (c *checker) checkExtenders(extenders []configv1.Extender) {
	for i := range extenders {
		e, at := &extenders[i], fmt.Sprintf("extenders[%d]", i)
		if u, err := url.Parse(e.URLPrefix); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			c.add(at+".urlPrefix", "must be a URL such as \"https://extender.example/scheduler\", or no call reaches the extender")
		}
		if t := e.TLSConfig; t != nil {
			c.checkTLS(at+".tlsConfig", t)
		}
	}
}

func (c *checker) checkTLS(at string, t *configv1.ExtenderTLSConfig) {
	hasCA := t.CAFile != "" || len(t.CAData) > 0
	hasCert, hasKey := t.CertFile != "" || len(t.CertData) > 0, t.KeyFile != "" || len(t.KeyData) > 0
	switch {
	case t.Insecure && hasCA:
		c.add(at, "specifying a root certificates file with the insecure flag is not allowed")
		return
	case hasCert != hasKey:
		c.add(at, "a certificate and its key have to be given together")
		return
	}
	given := rest.TLSClientConfig{CAData: t.CAData}
	if len(t.CertData) > 0 && len(t.KeyData) > 0 {
		given.CertData, given.KeyData = t.CertData, t.KeyData
	}
	if _, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: given}); err != nil {
		c.add(at, "%s", err)
	}
}
