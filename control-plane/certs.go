package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are the files by which the parts of a control plane, and its
// clients, trust each other. They are made anew for each control plane and
// outlive restarts of the API server, as they do in a real cluster.
type credentials struct {
	caFile, caKeyFile         string
	servingFile, servingKey   string
	serviceAccountFile        string
	serviceAccountKey         string
	tokenFile, kubeconfigFile string
	token                     string
	caPEM                     []byte
}

// newCredentials writes all credentials into dir, for an API server at url.
func newCredentials(dir, url string) (*credentials, error) {
	in := func(name string) string { return filepath.Join(dir, name) }
	c := &credentials{
		caFile: in("ca.crt"), caKeyFile: in("ca.key"),
		servingFile: in("serving.crt"), servingKey: in("serving.key"),
		serviceAccountFile: in("service-account.pub"), serviceAccountKey: in("service-account.key"),
		tokenFile: in("tokens.csv"), kubeconfigFile: in("kubeconfig"),
	}
	steps := []func() error{
		c.writeCertificates,
		c.writeServiceAccountKey,
		c.writeToken,
		func() error { return c.writeKubeconfig(url) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("write credentials: %w", err)
		}
	}
	return c, nil
}

// writeCertificates makes a CA and the API server's serving certificate.
func (c *credentials) writeCertificates() error {
	// An hour back, for the clocks of containers and virtual machines.
	notBefore := time.Now().Add(-time.Hour)
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "control-plane test CA"},
		NotBefore:             notBefore,
		NotAfter:              notBefore.AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    notBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	caKey, err := newKey(c.caKeyFile)
	if err != nil {
		return err
	}
	servingKey, err := newKey(c.servingKey)
	if err != nil {
		return err
	}
	if c.caPEM, err = sign(c.caFile, ca, ca, &caKey.PublicKey, caKey); err != nil {
		return err
	}
	_, err = sign(c.servingFile, serving, ca, &servingKey.PublicKey, caKey)
	return err
}

func (c *credentials) writeServiceAccountKey() error {
	key, err := newKey(c.serviceAccountKey)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	_, err = writePEM(c.serviceAccountFile, "PUBLIC KEY", public)
	return err
}

// writeToken makes the administrator's token: static, so that it is valid at
// once and stays so over restarts.
func (c *credentials) writeToken() error {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	c.token = hex.EncodeToString(secret)
	line := c.token + ",admin,admin,system:masters\n"
	return os.WriteFile(c.tokenFile, []byte(line), 0o600)
}

func (c *credentials) writeKubeconfig(url string) error {
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: control-plane
clusters:
- name: control-plane
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: admin
  user:
    token: %s
contexts:
- name: control-plane
  context:
    cluster: control-plane
    user: admin
    namespace: default
`, url, base64.StdEncoding.EncodeToString(c.caPEM), c.token)
	return os.WriteFile(c.kubeconfigFile, []byte(config), 0o600)
}

func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	_, err = writePEM(file, "PRIVATE KEY", der)
	return key, err
}

func sign(file string, template, parent *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return writePEM(file, "CERTIFICATE", der)
}

func writePEM(file, label string, der []byte) ([]byte, error) {
	encoded := pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
	return encoded, os.WriteFile(file, encoded, 0o600)
}
