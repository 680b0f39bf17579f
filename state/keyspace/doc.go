// Package keyspace is the key-value layer: views at one revision, updates that are
// conditional on all that they read, watches, sessions, leaderships, claims and blobs,
// over any of the stores. Values are JSON.
//
// It knows no entity. Package state builds the environment on it, the updater its records;
// they give each key its meaning.
package keyspace
