// Package names holds the names of the plugins that come with Berth, as configuration
// files, events and metrics spell them.
package names
