// Package domain says in which topology domains nodes are, for plugins that
// count pods by domain. It numbers the domains, and the sets of domains that
// nodes are in. Ids are dense. An id is used again after the last node of its
// domain has left. A domain keeps what is counted in it.
package domain
