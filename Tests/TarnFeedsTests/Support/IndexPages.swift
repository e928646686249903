/// More small pages, written by hand after what the servers print. In brackets: the page of OpenDirectoryDownloader's
/// tests, or the source, that shows the form.
extension IndexPages {
  /// Since 2.7: quotes, sizes and times stand elsewhere (caddyserver/caddy, fileserver/browse.html).
  static let caddy27 = """
    <!DOCTYPE html>
    <html><head><title>pub</title><style>a{color:red}</style></head><body><header><h1><a href="/">/</a><a href="/pub/">pub</a></h1></header>
    <a id="layout-list" class='layoutcurrent'><svg><path/></svg> List</a> <a id="layout-grid" class='layout'>Grid</a>
    <div class='listing'>
    <table aria-describedby="summary">
    <thead><tr><th></th><th><a href="?sort=namedirfirst&order=desc" class="icon"><svg></svg></a><a href="?sort=name&order=asc">
    Name</a><div class="filter-container"><input type="search" id="filter"></div></th>
    <th><a href="?sort=size&order=asc">Size</a></th><th class="hideable"><a href="?sort=time&order=asc">Modified</a></th></tr></thead>
    <tbody><tr><td></td><td><a href=".."><span class="go-up">Up</span></a></td><td></td></tr>
    <tr class="file"><td></td><td><a href="./sub%20dir%25/"><svg class="icon icon-tabler icon-tabler-folder-filled"></svg>
    <span class="name">sub dir%/</span></a></td><td>&mdash;</td>
    <td class="timestamp hideable"><time datetime="2023-11-14T22:13:20Z">11/14/2023</time></td></tr>
    <tr class="file"><td></td><td><a href="./a&amp;b.iso"><span class="name">a&amp;b.iso</span></a></td>
    <td class="size" data-size="5"><div class="sizebar"><div class="sizebar-text">
    5 B</div></div></td><td class="timestamp hideable"><time datetime="2023-11-14T22:13:20Z">11/14/2023</time></td></tr>
    <tr class="file"><td></td><td><a href="./link"><svg class="icon icon-tabler icon-tabler-file-symlink"></svg></a></td>
    <td class="size" data-size="2"><div>↱&nbsp;2 B</div></td><td><time datetime="2023-11-14T22:13:20Z">x</time></td></tr>
    </tbody></table></div></body>
    </html>
    """

  /// [08b]
  static let fancyUnescaped = """
    <title>Index of /pub/</title></head><body><h1>Index of /pub/</h1>
    <table id="list"><thead><tr><th style="width:55%"><a href="?C=N&O=A">File Name</a>&nbsp;<a href="?C=N&O=D">&nbsp;&darr;&nbsp;</a></th></tr></thead>
    <tbody><tr><td><a href="../">Parent directory/</a></td><td>-</td><td>-</td></tr>
    <tr><td><a href="sub%20dir%25/" title="sub dir%">sub dir%/</a></td><td>-</td><td>2016-Aug-21 18:57</td></tr>
    <tr><td><a href="a.mkv" title="a.mkv">a.mkv</a></td><td>865.5 MiB</td><td>2016-Aug-21 18:57</td></tr>
    </tbody></table></body></html>
    """

  /// [87a, 31c]
  static let fancyOld = """
    <html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1>
    <table id="list" cellpadding="0.1em" cellspacing="0">
    <colgroup><col width="55%"/><col width="20%"/><col width="25%"/></colgroup>
    <thead><tr><th><a href="?C=N&O=A">File Name</a>&nbsp;<a href="?C=N&O=D">&nbsp;&#8595;&nbsp;</a></th></tr></thead>
    <tbody><tr><td><a href="../">Parent directory/</a></td><td>-</td><td>-</td></tr>
    <tr><td><a href="a.iso">a.iso</a></td><td>   863M</td><td>2019-Apr-07 12:31</td></tr>
    <tr><td><a href="b.txt">b.txt</a></td><td>    512</td><td>2019-Apr-07 12:31</td></tr></tbody></table>
    <script>var x = "</table>";</script>
    """

  /// [90b]
  static let apacheIndexList = """
    <html><head><title></title></head><body><ul id="navbar"><li><a href="games/">Games</a></li></ul>
      <table id="indexlist">
       <tr class="indexhead"><th class="indexcolname">Name</th><th class="indexcolsize">Size</th></tr>
       <tr class="even"><td class="indexcolname"><a href="/">Parent Directory</a></td><td class="indexcolsize">  - </td></tr>
       <tr class="odd"><td class="indexcolname"><a href="3D%20Pool.zip">3D Pool.zip</a></td><td class="indexcolsize">1.5M</td></tr>
       <tr class="even"><td class="indexcolname"><a href="sub/">sub/</a></td><td class="indexcolsize">  - </td></tr>
    </table></body></html>
    """

  /// [26b, 97a]
  static let apache13 = """
    <!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
    <HTML>
     <HEAD>
      <TITLE>Index of /pub</TITLE>
     </HEAD>
     <BODY>
    <H1>Index of /pub</H1>
    <PRE><IMG SRC="/icons/blank.gif" ALT="     "> <A HREF="?N=D">Name</A>                    <A HREF="?M=A">Last modified</A>       <A HREF="?S=A">Size</A>  <A HREF="?D=A">Description</A>
    <HR>
    <IMG SRC="/icons/back.gif" ALT="[DIR]"> <A HREF="/">Parent Directory</A>        16-Apr-2020 17:20      -  
    <IMG SRC="/icons/folder.gif" ALT="[DIR]"> <A HREF="sub/">sub/</A>               16-Apr-2020 17:20      -  
    <IMG SRC="/icons/text.gif" ALT="[TXT]"> <A HREF="a.txt">a.txt</A>               16-Apr-2020 17:20   1.9M  
    </PRE><HR>
    </BODY></HTML>

    """

  /// [91a]
  static let maven = """
    <!DOCTYPE html>
    <html>

    <head>
    \t<title>Central Repository: pub</title>
    </head>

    <body>
    \t<header>
    \t\t<h1>pub</h1>
    \t</header>
    \t<hr/>
    \t<main>
    \t\t<pre id="contents">
    <a href="../">../</a>
    <a href="0.3-3/" title="0.3-3/">0.3-3/</a>                                            2005-09-21 03:35         -      
    <a href="a.jar" title="a.jar">a.jar</a>                                 2005-09-21 03:35    733741      
    <a href="old/" title="old/">old/</a>                                              -         -      
    \t\t</pre>
    \t</main>
    \t<hr/>
    </body>

    </html>
    """

  /// Release 6 (gomods/athens) and 7.117 (flashinfer-ai), which breaks the line behind each link.
  static func artifactory(breaking gap: String) -> String {
    """
    <!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
    <html>
    <head><title>Index of libs/pub</title>
    </head>
    <body>
    <h1>Index of libs/pub</h1>
    <pre>Name                                     Last modified      Size</pre><hr/>
    <pre><a href="../">../</a>
    <a href="include/">include/</a>\(gap)17-Jan-2019 19:40    -
    <a href="a.info">a.info</a>\(gap)17-Jan-2019 19:40  78 bytes
    <a href="a.zip">a.zip</a>\(gap)17-Jan-2019 19:40  1.26 MB
    <a href="far.xml">far.xml</a>->         -    -

    </pre>
    <hr/><address style="font-size:small;">Artifactory/6.6.0 Server at example.org Port 8081</address></body></html>

    """
  }

  /// [41b, 115a]
  static let tomcat = """
    <html>
    <head>
    <title>/ のディレクトリの一覧</title>
    <STYLE><!--H1 {color:white;}--></STYLE> </head>
    <body><h1>/ のディレクトリの一覧 - <a href="/"><b>Up To /</b></a></h1><HR size="1" noshade="noshade"><table width="100%" cellspacing="0" cellpadding="5" align="center">
    <tr>
    <td align="left"><font size="+1"><strong>ファイル名</strong></font></td>
    <td align="center"><font size="+1"><strong>サイズ</strong></font></td>
    <td align="right"><font size="+1"><strong><a href="?C=M;O=A">最終更新</a></strong></font></td>
    </tr><tr>
    <td align="left">&nbsp;&nbsp;
    <a href="/pub/sub%20dir/"><tt>sub dir/</tt></a></td>
    <td align="right"><tt>&nbsp;</tt></td>
    <td align="right"><tt>Tue, 14 Nov 2023 22:13:20 GMT</tt></td>
    </tr>
    <tr bgcolor="#eeeeee">
    <td align="left">&nbsp;&nbsp;
    <a href="/pub/a.jpg"><tt>a.jpg</tt></a></td>
    <td align="right"><tt>38.0 kb</tt></td>
    <td align="right"><tt>Tue, 14 Nov 2023 22:13:20 GMT</tt></td>
    </tr>
    </table>
    <HR size="1" noshade="noshade"><h3>Apache Tomcat/6.0.18</h3></body>
    </html>
    """

  /// As 10.1.60 of Debian serves it.
  static let tomcat10 = """
    <!doctype html>
    <html lang="en">
    <head>
    <title>Directory Listing For [&#47;pub&#47;]</title>
    <style>.line {height:1px;}</style>
    </head>
    <body>
    <h1>Directory Listing For [&#47;pub&#47;] - <a href="/"><b>Up To [&#47;]</b></a></h1>
    <hr class="line">
    <table width="100%" cellspacing="0" cellpadding="5" align="center">
    <thead>
    <tr>
    <th align="left"><font size="+1"><strong>Name</strong></font></th>
    <th align="center"><font size="+1"><strong>Size</strong></font></th>
    </tr>
    </thead>
    <tbody>
    <tr>
    <td align="left">&nbsp;&nbsp;
    <a href="/pub/sub/"><tt>sub/</tt></a></td>
    <td align="right"><tt>-</tt></td>
    <td align="right"><tt>Tue, 14 Nov 2023 22:13:20 GMT</tt></td>
    </tr>
    <tr bgcolor="#eeeeee">
    <td align="left">&nbsp;&nbsp;
    <a href="/pub/colon:%20colon.txt"><tt>colon: colon.txt</tt></a></td>
    <td align="right"><tt>4.0 KiB</tt></td>
    <td align="right"><tt>Tue, 14 Nov 2023 22:13:20 GMT</tt></td>
    </tr>
    </tbody>
    </table>
    <hr class="line">
    <h3>Apache Tomcat/10.1.60 (Debian)</h3>
    </body>
    </html>
    """

  /// [06b]
  static let liteSpeed = """
    <!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
    <html>
      <head>
      <title>Index of /pub/</title></head>
      <body>
        <h1>Index of /pub/</h1><pre><img src="/_autoindex/icons/blank.png" alt="     "> <a href='?ND'>Name</a>       <a href='?MA'>Last modified</a>         <a href='?SA'>Size</a>  <a href='?DA'>Description </a>
       <hr><img src="/_autoindex/icons/up.png" alt="up"> <a href="/">Parent Directory</A>     19-Jul-2018 03:38        -       
    <img src="/_autoindex/icons/folder.png" alt="directory"> <a href="/pub/sub/">sub</A>      19-Jul-2018 03:39        -       
    <img src="/_autoindex/icons/sound.png" alt="[SND]"> <a href="/pub/360.mp4">360.mp4</A>    19-Jul-2018 03:39   21836k       
    </pre><hr><address>Proudly Served by LiteSpeed Web Server at example.org Port 80</address>
    </body>
    </html>
    """

  /// A newer one.
  static let liteSpeedTable = """
    <!DOCTYPE html>
    <html><head><link rel="stylesheet" href="/_autoindex/assets/css/autoindex.css">
    <title>Index of /pub/</title></head><body><div class="content"><h1>Index of /pub/</h1>
    <div id="table-list"><table id="table-content"><thead class="t-header"><tr><th class="colname" aria-sort="ascending"><a class="name" href="?ND" onclick="return false"">Name</a></th><th class="colname" data-sort-method="number"><a href="?MA" onclick="return false"">Last Modified</a></th></tr></thead>
    <tr data-sort-method="none"><td><a href="/"><img class="icon" src="/_autoindex/assets/icons/corner-left-up.svg" alt="Up">Parent Directory</a></td><td></td><td></td></tr>
    <tr><td data-sort="*sub"><a href="/pub/sub/"><img class="icon" alt="Directory">sub</a></td><td data-sort="153328840">2024-10-28 15:20</td><td data-sort="-1">-</td></tr>
    <tr><td data-sort="a.txt"><a href="/pub/a.txt"><img class="icon" alt="[TXT]">a.txt</a></td><td data-sort="153328840">2024-10-28 15:20</td><td data-sort="4096">4k</td></tr>
    </table></div><address>Proudly Served by LiteSpeed Web Server at example.org Port 443</address></div></body></html>
    """

  static let liteSpeedPlain = """
    <!DOCTYPE html>
    <html><head><title>Index of /pub/</title></head>
      <body>
        <h1>Index of /pub/</h1><ul>
    <li><a href="/">Parent Directory</a></li>
    <li><a href="/pub/sub/">sub</a></li>
    <li><a href="/pub/a.txt">a.txt</a></li>
    </ul>
    <address>Proudly Served by LiteSpeed Web Server at example.org Port 80</address>
    </body>
    </html>
    """

  /// [39b]
  static let mozilla = """
    <!DOCTYPE html>
    <html>
    \t<head>
    \t\t<title>Directory Listing: /pub/</title>
    \t</head>
    \t<body>
    \t\t<h1>Index of /pub/</h1>
    \t\t<table>
    \t\t\t<tr>
    \t\t\t\t<th>Type</th>
    \t\t\t\t<th>Name</th>
    \t\t\t\t<th>Size</th>
    \t\t\t\t<th>Last Modified</th>
    \t\t\t</tr>
    \t\t\t<tr><td>Dir</td><td><a href="/">..</a></td><td></td><td></td></tr>
    \t\t\t<tr><td>Dir</td><td><a href="/pub/sub/">sub/</a></td><td></td><td></td></tr>
    \t\t\t<tr>
    \t\t\t\t<td>File</td>
    \t\t\t\t<td><a href="/pub/a.zip">a.zip</a></td>
    \t\t\t\t<td>3M</td>
    \t\t\t\t<td>27-Oct-2015 17:38</td>
    \t\t\t</tr>
    \t\t</table>
    \t</body>
    </html>
    """

  /// [104a], and 1.13 and later (emikulic/darkhttpd).
  static let darkhttpd = """
    <html>
    <head>
     <title>/pub/</title>
    </head>
    <body>
    <h1>/pub/</h1>
    <tt><pre>
    <a href="..">..</a>/
    <a href="sub">sub</a>/
    <a href="a.mp4">a.mp4</a>          1202701165
    </pre></tt>
    <hr>
    Generated by darkhttpd/1.12 on Tue, 30 Jun 2020 10:33:46 GMT
    </body>
    </html>

    """
  static let darkhttpdNew = """
    <!DOCTYPE html>
    <html>
    <head>
    <title>/pub/</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    </head>
    <body>
    <h1>/pub/</h1>
    <pre>
    <a href="../">..</a>/
    <a href="sub/">sub</a>/         2024-03-01 10:20
    <a href="a.mp4">a.mp4</a>       2024-03-01 10:20 1202701165
    </pre>
    <hr>
    Generated by darkhttpd/1.16 on Tue, 30 Jun 2020 10:33:46 GMT
    </body>
    </html>

    """

  /// [107b], and 0.2x (svenstaro/miniserve, renderer.rs).
  static let miniserveOld = """
    <!DOCTYPE html><html><title>Index of /pub</title><body><nav><ul><li><a href="/pub?theme=zenburn">Zenburn</a></li></ul></nav>
    <div class="container"><h1 class="title">Index of /pub</h1><div class="download"><a href="?download=tar_gz">Download .tar.gz</a></div>
    <table><thead><th><span class=""><a href="?sort=name&amp;order=asc" title="Sort by name in ascending order">Name</a></span></th></thead>
    <tbody><tr><td colspan="3"><a class="root" href="../">Parent directory</a></td></tr>
    <tr><td><p><a class="directory" href="/pub/sub">sub/</a></p></td><td></td><td class="date-cell"><span>Jun 24 <span class="at"> at </span>00:56 </span><span class="history">2 months ago</span></td></tr>
    <tr><td><p><div class="file-entry"><a class="file" href="/pub/a.url">a.url</a><span class="mobile-info size">226 B</span></div></p></td><td>226 B</td><td class="date-cell"><span>Jun 24 <span class="at"> at </span>00:56 </span><span class="history">2 months ago</span></td></tr>
    </tbody></table><a class="back" href="#top">⇪</a></div></body>
    """
  static let miniserve = """
    <!DOCTYPE html><html><head><title>pub</title></head><body><div class="container"><h1 class="title">pub</h1>
    <table><thead><tr><th class="name"><span><span class="chevron">▾</span><a href="?sort=name&amp;order=asc" title="Sort by name in ascending order">Name</a></span></th></tr></thead>
    <tbody><tr><td colspan="3"><p><span class="root-chevron">◂</span><a class="root" href="../">Parent directory</a></p></td></tr>
    <tr class="entry-type-directory"><td><p><a class="directory" href="/pub/sub/">sub/</a></p></td><td class="size-cell"></td><td class="date-cell"><span>2023-11-14 22:13:20 +00:00 </span><span class="history">2 years ago</span></td></tr>
    <tr class="entry-type-file"><td><p><a class="file" href="/pub/a.iso">a.iso</a><span class="mobile-info size"><span><a href="?sort=size&amp;order=asc">1.5 GiB</a></span></span></p></td><td class="size-cell">1.5 GiB</td><td class="date-cell"><span>2023-11-14 23:13:20 +01:00 </span><span class="history">2 years ago</span></td></tr>
    <tr class="entry-type-file"><td><p><a class="symlink" href="/pub/link">link<span class="symlink-symbol"></span><a class="file">target</a></a></p></td><td class="size-cell">12 B</td></tr>
    </tbody></table></div></body></html>
    """

  static let webfs = """
    <head><title>example.org:80/pub/</title></head>
    <body bgcolor=white text=black link=darkblue vlink=firebrick alink=red>
    <h1>listing: 
    <a href="/">/</a><a href="/pub/">pub/</a></h1><hr noshade size=1><pre>
    <b>access      user      group     date             size  name</b>

    drwxr-xr-x  root      root      Nov 21 03:52    &lt;DIR&gt;  <a href="../">..</a>
    drwxr-xr-x  root      root      Nov 21 03:52    &lt;DIR&gt;  <a href="dir&amp/">dir&amp</a>
    -rw-r--r--  root      root      Nov 14  2023     2  B  <a href="&amp;literal.txt">&amp;literal.txt</a>
    -rw-r--r--  root      root      Nov 21 03:52    14 MB  <a href="a&b.iso">a&b.iso</a>
    -rw-r--r--  root      root      Nov 21 03:52     0  B  <a href="take:2">take:2</a>
    </pre><hr noshade size=1>
    <small><a href="http://bytesex.org/webfs.html">webfs/1.21</a> &nbsp; 21/Nov/2026 03:56:17 GMT</small>
    </body>
    """

  static let nginxXML = """
    <?xml version="1.0"?>\r
    <list>\r
    <directory mtime="2023-11-14T22:13:20Z">sub dir%</directory>\r
    <file mtime="2023-11-14T22:13:20Z" size="12">a&amp;b #.txt</file>\r
    <other mtime="2023-11-14T22:13:20Z">dangling</other>\r
    <file mtime="2023-11-14T22:13:20Z" size="12">../x</file>\r
    </list>\r

    """

  static let more: [(name: String, text: String)] = [
    ("Caddy index", caddy27), ("nginx fancyindex", fancyUnescaped), ("nginx fancyindex", fancyOld),
    ("Apache index", apacheIndexList), ("Apache index", apache13), ("Maven Central index", maven),
    ("Artifactory index", artifactory(breaking: "   ")),
    ("Artifactory index", artifactory(breaking: "\n            ")), ("Tomcat index", tomcat),
    ("Tomcat index", tomcat10),
    ("LiteSpeed index", liteSpeed), ("LiteSpeed index", liteSpeedTable), ("LiteSpeed index", liteSpeedPlain),
    ("Mozilla index", mozilla), ("darkhttpd index", darkhttpd), ("darkhttpd index", darkhttpdNew),
    ("miniserve index", miniserveOld), ("miniserve index", miniserve), ("webfs index", webfs),
    ("nginx XML index", nginxXML),
  ]
}
