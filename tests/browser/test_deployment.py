"""The examples in docs/deployment.md: nginx with a login, and the systemd unit."""

import base64
import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.browser.conftest import expect, serve, settle
from tests.browser.gallery import ROOT
from tests.waiting import wait_for

PAGE = (ROOT / "docs/deployment.md").read_text("utf-8")
ADA = {"username": "ada", "password": "secret"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The app below a path, with the environment of the unit."""
    _, setting = blocks("ini")
    name, value = setting.strip().removeprefix("Environment=").split("=")
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("DENSEMBED_GALLERY")  # that of the tests is empty
    program = [sys.executable, "-m", "densembed", "app", "--no-open"]
    with serve(tmp_path, program=program, base=f"/{value}") as address:
        yield address


@pytest.fixture
def nginx(app, tmp_path) -> str:
    """The address of nginx in front of the app."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if not program or not shutil.which("openssl"):
        pytest.skip("nginx and openssl are needed.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    passwords = tmp_path / "passwords"
    command = ["openssl", "passwd", "-apr1", ADA["password"]]
    digest = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    passwords.write_text(f"{ADA['username']}:{digest}")
    (location,) = blocks("nginx")
    location = location.replace("/etc/nginx/densembed.passwords", str(passwords))
    location = location.replace("localhost:8501", re.search(r"localhost:\d+", app)[0])
    files = ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    tls = f"ssl_certificate {tmp_path}/cert.pem; ssl_certificate_key {tmp_path}/key.pem;"
    socket_of_tls = f"listen unix:{tmp_path}/tls.socket ssl; {tls}"
    user = "user root;" if os.geteuid() == 0 else ""
    temporary = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"{user} daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/nginx.log; events {{}}"
        f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port};"
        f"{socket_of_tls}\n{location} }} }}"
    )
    server = subprocess.Popen([program, "-c", tmp_path / "nginx.conf"])
    try:
        wait_for(lambda: accepts(port))
        yield f"http://localhost:{port}/fields"
    finally:
        server.terminate()
        server.wait()


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_nginx_asks_for_a_login_and_forwards_the_pages(nginx, browser):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError, match="401"):
        opener.open(nginx, timeout=10)
    context = browser.new_context(http_credentials=ADA)
    page = context.new_page()
    page.goto(nginx + "/")
    expect(settle(page).locator("h1")).to_have_text("What does this network look at?")
    page.get_by_role("link", name="Lab").click()  # over the WebSocket
    expect(page.locator("h1")).to_have_text("How does a density become a layer?")
    assert page.url.startswith(nginx)
    context.close()


def test_a_redirect_of_a_page_with_tls_keeps_the_tls(nginx, tmp_path):
    """The server behind the proxy redirects /fields to /fields/."""
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    context.check_hostname = False  # its certificate has no alternative names
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(30)
        plain.connect(str(tmp_path / "tls.socket"))
        connection = http.client.HTTPConnection("localhost")
        connection.sock = context.wrap_socket(plain, server_hostname="localhost")
        login = base64.b64encode(f"{ADA['username']}:{ADA['password']}".encode()).decode()
        connection.request("GET", "/fields", headers={"Authorization": f"Basic {login}"})
        answer = connection.getresponse()
        assert answer.status == 307
        assert answer.headers["Location"] == "https://localhost/fields/"
        connection.close()


def test_the_unit_is_valid(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is needed.")
    unit, setting = blocks("ini")
    text = unit.replace("[Install]", f"{setting}\n[Install]")
    program = Path(sys.executable)
    text = text.replace("/opt/densembed/bin/densembed", str(program)).replace(
        "User=densembed", "User=root"
    )
    (tmp_path / "densembed.service").write_text(text)
    command = ["systemd-analyze", "verify", tmp_path / "densembed.service"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert "densembed.service" not in done.stderr, done.stderr
