/** Signs in with the token of a link `/signin#TOKEN`. Browsers do not send the part after the #. */

function signIn() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  document.getElementById("token").value = token;
  document.getElementById("signin").submit();
}

addEventListener("hashchange", signIn);
signIn();
